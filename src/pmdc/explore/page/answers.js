// Answers beside the graph: the decision, what is known, what to ask next, the most probable outcomes, and sets.

const MANY = 8;
const SMALL = 0.01;
const SHORT = 32;

const heading = (id, text, ...beside) => el("div", { class: "panel-head" }, el("h2", { id }, text), beside);
const waiting = () => el("p", { class: "note" }, "…");

function meter(share, label) {
  return el("span", { class: "meter", "aria-hidden": "true", title: label }, el("i", { style: { width: `${100 * Math.min(1, Math.max(0, share))}%` } }));
}

/** What is known, as chips that release it. */
function drawKnown() {
  const { given } = page.state;
  const names = Object.keys(given);
  const chips = names.map((name) => el("span", { class: "chip" }, known(name, given[name]),
    button("×", () => setState({ given: withGiven(given, name) }), { "aria-label": `Release ${shorten(name)}`, id: `release-${page.schema.class_variables.indexOf(variable(name))}` })));
  fill(find("known-panel"),
    el("div", { class: "known-line" },
      el("h2", { id: "known-title" }, "Known states"),
      names.length ? chips : el("p", { class: "note" }, "None. Click a state to say that it is known, and see the others change."),
      names.length > 1 && button("Release all", () => setState({ given: {} }), { class: "link", id: "release-all" })));
}

// The decision -------------------------------------------------------------------------------------------------

function drawDecision({ after, truth, given, warnings }) {
  const { losses } = page.schema;
  const loss = losses.find((one) => one.name === page.state.loss);
  const menu = el("select", { id: "loss", onchange: () => setState({ loss: find("loss").value }) },
    losses.filter((one) => !one.whole_batch).map((one) => el("option", { value: one.name, selected: one === loss }, one.title)));
  const error = after.standard_error > 0 ? ` ± ${amount(after.standard_error)}` : "";
  fill(find("decision"), heading("decision-title", "Prediction"),
    el("div", { class: "line" }, el("label", { for: "loss" }, "What counts as a mistake"), menu),
    el("p", { class: "big", id: "expected-loss", "data-value": after.expected_loss }, amount(after.expected_loss), el("small", {}, `${error} expected loss`)),
    el("p", { class: "note" }, loss?.description, " The prediction makes it as small as possible", after.proved ? "." : ", as far as could be found."),
    drawTruth(after, truth, given),
    el("details", { id: "predicted-states", open: page.schema.class_variables.length <= MANY },
      el("summary", {}, "Predicted states"), predictedTable(after, truth, given)),
    drawWarnings(warnings));
}

/** What the library warns of, in its own words. */
function drawWarnings(warnings) {
  return warnings.length > 0 && el("details", { class: "warnings" }, el("summary", {}, plural(warnings.length, "warning")),
    warnings.map((text) => el("p", { class: "warning" }, clean(text))));
}

const hasTruth = (truth, name) => truth && own(truth, name) !== undefined && own(truth, name) !== null;

function drawTruth(after, truth, given) {
  const names = page.schema.class_variables.map((one) => one.name).filter((name) => hasTruth(truth, name) && own(given, name) === undefined);
  if (!names.length) return null;
  const wrong = names.filter((name) => !same(own(truth, name), own(after.prediction, name)));
  if (!wrong.length) return el("p", {}, el("span", { class: "good" }, "All right: "), `the true ${names.length === 1 ? "state" : "states"} of ${plural(names.length, "class variable")} ${names.length === 1 ? "is" : "are"} predicted.`);
  return el("p", {}, el("span", { class: "bad" }, `${wrong.length} of ${names.length} wrong: `),
    listed(wrong.slice(0, MANY).map((name) => [term(name), " is truly ", term(own(truth, name))]).map((one) => el("span", {}, one)), "; "),
    wrong.length > MANY && ` and ${wrong.length - MANY} more`, ".");
}

function predictedTable(after, truth, given) {
  const rows = page.schema.class_variables.map(({ name, states }) => {
    const state = own(after.prediction, name);
    const probability = after.marginals[name][states.findIndex((one) => same(one, state))] ?? 0;
    const judged = hasTruth(truth, name) && own(given, name) === undefined;
    const right = judged && same(own(truth, name), state);
    return el("tr", {}, el("th", { scope: "row" }, term(name, SHORT)), el("td", {}, term(state, SHORT)), el("td", { class: "amount", "data-value": probability }, percent(probability)),
      el("td", {}, judged ? el("span", { class: right ? "good" : "bad" }, right ? "right" : "wrong") : own(given, name) !== undefined ? "known" : ""));
  });
  return el("table", {}, el("thead", { class: "hidden" }, el("tr", {}, ["class variable", "predicted state", "probability", "right or wrong"].map((one) => el("th", { scope: "col" }, one)))), el("tbody", {}, rows));
}

// What to ask next ---------------------------------------------------------------------------------------------

function drawNext(answer) {
  const title = heading("next-title", "What to ask next");
  if (typeof answer === "string") return fill(find("next"), title, el("p", { class: "note" }, answer));
  if (!answer) return fill(find("next"), title, waiting());
  const all = [...answer.class_variables, ...answer.features.map((one) => ({ ...one, feature: true }))];
  const useful = all.filter((one) => one.value > 1e-9).sort((a, b) => b.value - a.value).slice(0, 6);
  const now = answer.expected_loss;
  const lines = useful.map(({ name, value, standard_error: error, feature, learned_gaps: learned }) => el("li", {},
    el("div", {}, el("span", {}, button(term(name, SHORT), () => (feature ? showField(name) : showVariable(name)), { class: "link name" }), feature && el("small", {}, " (missing)")),
      el("span", { class: "amount", "data-value": value }, `−${amount(value)}`, error >= 0.001 && el("small", {}, ` ± ${amount(error)}`))),
    meter(value / (now || 1)),
    feature && learned === false && el("small", {}, "The training rows had no gaps in it, so this is rough.")));
  fill(find("next"), title,
    useful.length
      ? [el("p", { class: "note" }, "Find out ", el("b", {}, term(useful[0].name)), ` first: on average, it brings the expected loss from ${amount(now)} down to ${amount(Math.max(0, now - useful[0].value))}. How much each helps:`), el("ul", { class: "bars" }, lines)]
      : el("p", { class: "note" }, all.length ? "Nothing that could be found out would change the prediction." : "Everything is known."),
    !answer.exact && el("p", { class: "note" }, "Values are approximate for this loss."));
}

// Outcomes and sets --------------------------------------------------------------------------------------------

/** The first outcome in full; of each other one, what differs from the first. */
function drawOutcomes(answer) {
  const title = heading("outcomes-title", "Most probable outcomes");
  if (typeof answer === "string") return fill(find("outcomes"), title, el("p", { class: "note" }, answer));
  if (!answer) return fill(find("outcomes"), title, waiting());
  const { outcomes } = answer;
  const [first] = outcomes;
  const names = page.schema.class_variables.map((one) => one.name);
  const differing = (states) => names.filter((name) => !same(own(states, name), own(first.states, name)));
  const varying = names.filter((name) => outcomes.some((one) => differing(one.states).includes(name)));
  const common = names.filter((name) => !varying.includes(name));
  const small = first.probability < SMALL;
  const share = (probability) => (small ? percent(probability / first.probability) : percent(probability));
  const pairs = (listedNames, states) => listedNames.map((name) => known(name, own(states, name)));
  const lines = outcomes.map(({ states, probability }, i) => el("li", { "data-states": JSON.stringify(states) },
    el("div", {}, el("span", { class: "outcome" }, pairs(i ? differing(states) : names.length > MANY ? varying : names, states)),
      el("span", { class: "amount", "data-value": probability }, share(probability))),
    meter(probability / first.probability)));
  const whole = outcomes.reduce((sum, one) => sum + one.probability, 0);
  const count = Number(page.schema.n_outcomes);
  fill(find("outcomes"), title,
    el("p", { class: "note" }, "States of all class variables together: the most probable outcome, then what is different in the next ones. ",
      small ? `The first has a probability of ${odds(first.probability)}; the others are compared with it.`
        : `These ${outcomes.length} of ${count < 1e9 ? count.toLocaleString("en") : "very many"} have ${percent(whole)} of the probability.`),
    el("ol", { class: "bars" }, lines),
    names.length > MANY && common.length > 0 && el("details", { id: "common-states" }, el("summary", {}, `The same in all: ${plural(common.length, "class variable")}`),
      el("p", { class: "outcome note" }, pairs(common, first.states))));
}

function drawSets(answer, calibrated) {
  const menu = el("select", { id: "coverage", onchange: () => setState({ coverage: Number(find("coverage").value) }) },
    COVERAGES.map((one) => el("option", { value: one, selected: one === page.state.coverage }, `${percent(one)} sure`)));
  const title = heading("sets-title", "States to expect", el("span", { class: "space" }), el("label", { class: "hidden", for: "coverage" }, "How sure"), menu);
  if (typeof answer === "string") return fill(find("sets"), title, el("p", { class: "note" }, answer));
  if (!answer) return fill(find("sets"), title, waiting());
  const { states, outcomes, probability } = answer.sets;
  const sure = percent(page.state.coverage);
  const names = page.schema.class_variables.map((one) => one.name).filter((name) => states && own(states, name));
  const [open, settled] = [names.filter((name) => own(states, name).length !== 1), names.filter((name) => own(states, name).length === 1)];
  const line = (name) => el("tr", { "data-states": JSON.stringify(own(states, name)) }, el("th", { scope: "row" }, term(name, SHORT)), el("td", {}, own(states, name).length ? listed(own(states, name).map((one) => term(one, SHORT)), " or ") : "none fits"));
  const rows = [...open, ...settled];
  const left = rows.slice(names.length > MANY + 2 ? MANY : rows.length);
  const why = calibrated
    ? `Calibrated on ${plural(calibrated.n_rows, "row")} with known states: over all such rows together, each set has the true state in ${sure} of cases, even if the model's probabilities are wrong. For single rows it may be more or less.`
    : `Not calibrated: this relies on the model's own probabilities. Each set has the true state with at least ${sure}, if they are right.`;
  fill(find("sets"), title,
    el("p", { class: "note" }, why),
    names.length > 0 && el("table", { class: "sets" }, el("tbody", {}, rows.slice(0, rows.length - left.length).map(line))),
    left.length > 0 && el("details", { id: "more-sets" }, el("summary", {}, `${left.length} more`), el("table", { class: "sets" }, el("tbody", {}, left.map(line)))),
    outcomes?.length > 0 && el("p", { class: "note" }, outcomes.length === 1 ? `The most probable outcome alone has ${percent(probability)}.` : `The ${outcomes.length} most probable outcomes together have ${percent(probability)}.`));
}
