// Why: the way from the base rate to the probability of a state, in bars and in words.

const BARS = 12;
const VISIBLE = 0.005;
const AS_PREDICTED = " (as predicted)";
const WORTH_SAYING = 0.05;

const logistic = (x) => 1 / (1 + Math.exp(-x));

/** Ask why a class variable has a state; by default the predicted one. */
function openWhy(name, state = own(shown.data.after.prediction, name)) {
  setState({ why: { variable: name, state } });
  const panel = find("why");
  panel.scrollIntoView({ block: "nearest", behavior: window.matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
  panel.focus({ preventScroll: true });
}

function drawWhy(answer) {
  const { why, given, pinned } = page.state;
  if (!page.schema.explains) return fill(find("why"), heading("why-title", "Why?"), el("p", { class: "note" }, "This model has no conditional tables, so its predictions cannot be divided into contributions."));
  if (!why) return fill(find("why"), heading("why-title", "Why?"), el("p", { class: "note" }, "Choose ‘Why?’ beside a class variable to see what speaks for its state and what against it."));
  const { states } = variable(why.variable);
  const menu = el("select", { id: "why-state", "aria-label": `State of ${shorten(why.variable)}`, onchange: () => setState({ why: { variable: why.variable, state: states[Number(find("why-state").value)] } }) },
    states.map((state, i) => el("option", { value: i, selected: same(state, why.state) }, shorten(show(state), 40))));
  const close = button("Close", () => { setState({ why: null }); find("why").focus(); }, { id: "why-close", class: "close" });
  const title = el("div", { class: "panel-head" }, el("h2", { id: "why-title" }, pinned ? "Why do A and B differ in " : "Why ", term(why.variable, 40), " ="), menu, el("span", { class: "space" }), close);
  if (typeof answer === "string") return fill(find("why"), title, el("p", { class: "note" }, answer));
  if (!answer) return fill(find("why"), title, waiting());
  const sets = Object.entries(given).filter(([name, value]) => name !== why.variable && Array.isArray(value)).map(([name]) => term(name));
  const itself = own(given, why.variable) !== undefined;
  fill(find("why"), title,
    el("p", { class: "sentence", id: "why-sentence" }, sentence(answer, pinned)),
    itself && el("p", { class: "note" }, "As if ", term(why.variable), " itself were not known."),
    sets.length > 0 && el("p", { class: "note" }, "Left out, because several states are possible: ", listed(sets), "."),
    waterfall(answer, pinned),
    el("p", { class: "note" }, "Bars to the right speak for the state, bars to the left against it. They add up in log-odds: +0.7 doubles the odds, +2.3 multiplies them by ten.",
      shownSteps(answer.contributions).some(isPredicted) && " A class variable ‘as predicted’ is not known, but the values of this case say something about it: see ‘through what’."),
    drawWarnings(answer.warnings));
}

const isPredicted = ({ kind, value }) => kind === "class variable" && [value].flat().every((one) => one === null);

/** What a contribution is about: a value of a feature, a known state, or an expert. */
function about({ kind, name, value }, compared) {
  if (kind === "expert") return [term(name)];
  const empty = kind === "class variable" ? "not known" : "missing";
  const word = (one) => (one === null ? empty : term(one));
  const pair = compared && Array.isArray(value) ? value : null;
  if (pair && !same(pair[0], pair[1])) return [term(name), ": ", word(pair[0]), " → ", word(pair[1])];
  const one = pair ? pair[1] : value;
  if (one === null && kind === "class variable") return [term(name), AS_PREDICTED];
  return one === null ? [term(name), ` (${empty})`] : [term(name), " = ", term(one)];
}

/** In words: mostly because of what, and what speaks against it. */
function sentence(answer, compared) {
  const { base, log_odds: end, contributions } = answer;
  const [from, to] = [percent(answer.base_probability), percent(answer.probability)];
  const up = end >= base;
  const large = contributions.filter((one) => Math.abs(one.contribution) >= WORTH_SAYING);
  const supporting = large.filter((one) => one.contribution > 0 === up).slice(0, 2);
  const opposing = large.filter((one) => one.contribution > 0 !== up).slice(0, 1);
  const phrase = (one) => el("span", {}, about(one, compared), ` (${signed(one.contribution)})`);
  const subject = known(answer.variable, answer.state);
  const reference = compared ? "in A" : answer.reference === "the average row" ? "in the average row" : `in ${answer.reference}`;
  const here = compared ? "in B" : "here";
  if (Math.abs(end - base) < WORTH_SAYING) return [subject, ` is about as probable ${here} (${to}) as ${reference} (${from}).`];
  return [subject, ` has ${to} ${here}, ${up ? "more" : "less"} than ${reference} (${from}). `,
    supporting.length ? ["Mostly because ", listed(supporting.map(phrase))] : "Many small contributions add up",
    opposing.length ? ["; ", phrase(opposing[0]), up ? " speaks against it." : " speaks for it."] : "."];
}

/** The contributions that have a bar of their own. */
function shownSteps(contributions) {
  const visible = contributions.filter((one) => Math.abs(one.contribution) >= VISIBLE).length;
  return contributions.slice(0, Math.min(visible, visible > BARS + 1 ? BARS : BARS + 1));
}

function waterfall(answer, compared) {
  const { base, contributions } = answer;
  const largest = shownSteps(contributions);
  const others = contributions.slice(largest.length);
  const steps = largest.map((one) => ({ ...one, label: about(one, compared) }));
  if (others.length) steps.push({ name: null, label: plural(others.length, "other"), contribution: others.reduce((sum, one) => sum + one.contribution, 0), standard_error: Math.hypot(...others.map((one) => one.standard_error)) });
  let at = base;
  const bars = steps.map((one) => ({ ...one, from: at, to: (at += one.contribution) }));
  const ends = [base, answer.log_odds, ...bars.map((one) => one.to)];
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const room = Math.max(high - low, 0.1);
  const x = (value) => 3 + (94 * (value - low)) / room;
  const rows = bars.map((one, i) => step(one, i, x, own(answer.through, one.name), one.kind === "class variable"));
  return el("div", { class: "scroll" }, el("table", { class: "waterfall", "aria-label": "Contributions", "data-base": base, "data-total": answer.log_odds },
    el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "what"), el("th", { scope: "col", class: "drawn" }, el("span", { class: "hidden" }, "bar")),
      el("th", { scope: "col", class: "amount" }, "log-odds"), el("th", { scope: "col", class: "amount" }, "probability"))),
    el("tbody", {},
      endRow(compared ? "A" : "Average row", base, answer.base_probability, x),
      rows,
      endRow(compared ? "B" : "This case", answer.log_odds, answer.probability, x))));
}

function endRow(label, value, probability, x) {
  return el("tr", { class: "end" }, el("th", { scope: "row" }, label), el("td", { class: "drawn" }, el("i", { class: "point", style: { left: `${x(value)}%` } })),
    el("td", { class: "amount", "data-value": value }, minus(value.toFixed(2))), el("td", { class: "amount", "data-value": probability }, percent(probability)));
}

function step({ label, from, to, contribution, standard_error: error }, i, x, through, isVariable) {
  const parts = isVariable && through?.length ? through.filter((one) => Math.abs(one.contribution) >= 0.0005).slice(0, BARS) : [];
  const body = el("td", { class: "drawn" }, el("i", { class: `change ${contribution < 0 ? "against" : "for"}`, style: { left: `${x(Math.min(from, to))}%`, width: `${Math.abs(x(to) - x(from))}%` } }));
  const rows = parts.map((one) => el("tr", { class: "part", hidden: true }, el("th", { scope: "row" }, one.kind === "class variable" ? "the state itself" : about(one, Array.isArray(one.value))),
    el("td", { class: "drawn" }), el("td", { class: "amount" }, signed(one.contribution)), el("td", {})));
  const toggle = parts.length > 0 && button("through what", () => {
    const open = toggle.getAttribute("aria-expanded") !== "true";
    toggle.setAttribute("aria-expanded", String(open));
    rows.forEach((one) => (one.hidden = !open));
  }, { class: "link", "aria-expanded": "false", id: `through-${i}` });
  const title = error > 0 ? `± ${error.toFixed(3)}` : null;
  return [el("tr", { class: "step" }, el("th", { scope: "row" }, label, toggle && [" ", toggle]), body,
    el("td", { class: "amount", "data-value": contribution, title }, signed(contribution), error >= 0.05 && el("small", {}, ` ± ${error.toFixed(2)}`)),
    el("td", { class: "amount soft" }, percent(logistic(to)))), ...rows];
}
