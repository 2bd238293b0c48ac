// Two cases side by side: A was kept, B is the present one.

const keepAsA = () => setState({ pinned: caseOf(page.state) });
const stopComparing = () => setState({ pinned: null });

function backToA() {
  const { pinned } = page.state;
  setState({ ...pinned, pinned: caseOf(page.state) });
}

function caseWords({ index, edits, given }) {
  const changes = Object.keys(edits).length;
  const states = Object.entries(given);
  return [index === null ? "the new case" : rowName(index), changes > 0 && ` with ${plural(changes, "changed value")}`,
    states.length > 0 && [", known: ", listed(states.slice(0, 3).map(([name, value]) => known(name, value))), states.length > 3 && ` and ${states.length - 3} more`]];
}

function drawComparison(data) {
  const panel = find("comparison");
  const { pinned } = page.state;
  panel.hidden = !pinned;
  if (!pinned) return panel.replaceChildren();
  const title = heading("comparison-title", "A and B side by side",
    el("span", { class: "space" }),
    button("Exchange A and B", backToA, { id: "exchange" }),
    button("Stop comparing", stopComparing, { id: "stop-comparing" }));
  const words = el("dl", { class: "cases" },
    el("div", {}, el("dt", {}, el("i", { class: "key a" }), "A"), el("dd", {}, caseWords(pinned))),
    el("div", {}, el("dt", {}, el("i", { class: "key b" }), "B"), el("dd", {}, caseWords(page.state))));
  if (!data) return fill(panel, title, words);
  const rows = differences(data);
  const alike = same(caseOf(page.state), pinned);
  fill(panel, title, words,
    alike && el("p", { class: "note" }, "Both are the same as yet. Choose another row, change a value or say that a state is known."),
    rows.length > 0 && el("div", { class: "scroll" }, el("table", { id: "differences" },
      el("thead", {}, el("tr", {}, ["what differs", "A", "B"].map((one) => el("th", { scope: "col" }, one)))),
      el("tbody", {}, rows))),
    !alike && !page.state.why && el("p", { class: "note" }, "Choose ‘Why?’ beside a class variable to see what makes the difference."));
}

function differences({ first, after, firstRow, row }) {
  const { pinned, given } = page.state;
  const line = (kind, name, a, b) => el("tr", {}, el("th", { scope: "row" }, term(name), kind && el("small", {}, ` ${kind}`)), el("td", {}, a), el("td", {}, b));
  const value = (one) => (one === null || one === undefined ? el("span", { class: "soft" }, "missing") : term(one));
  const state = (one) => (one === undefined ? el("span", { class: "soft" }, "not known") : listed([one].flat().map((each) => term(each)), " or "));
  const features = usedFeatures().map(({ name }) => name).filter((name) => !same(own(firstRow, name) ?? null, own(row, name) ?? null));
  const names = page.schema.class_variables.map((one) => one.name);
  const states = names.filter((name) => !same(own(pinned.given, name), own(given, name)));
  const decided = names.filter((name) => !same(own(first.prediction, name), own(after.prediction, name)));
  return [
    ...features.slice(0, 20).map((name) => line("", name, value(own(firstRow, name)), value(own(row, name)))),
    features.length > 20 && el("tr", {}, el("th", { scope: "row" }, `${features.length - 20} further features`), el("td", {}), el("td", {})),
    ...states.map((name) => line("known state", name, state(own(pinned.given, name)), state(own(given, name)))),
    ...decided.map((name) => line("prediction", name, term(own(first.prediction, name)), term(own(after.prediction, name)))),
    first.expected_loss !== after.expected_loss && el("tr", {}, el("th", { scope: "row" }, "expected loss"), el("td", {}, amount(first.expected_loss)), el("td", {}, amount(after.expected_loss))),
  ].filter(Boolean);
}
