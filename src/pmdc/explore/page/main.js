// The page as a whole: what is asked when the state changes, in which order, and what is drawn.

const PAUSE_WHILE_EDITING = 120;
const timers = { edit: 0, dim: 0 };

function complain(message) {
  fill(find("problem"), message && el("div", { class: "notice" }, el("p", {}, message),
    canUndo() && button("Undo", () => move(-1), { id: "undo-problem" }), button("Dismiss", () => complain(""), { id: "dismiss" })));
}

function drawHeader() {
  const { title, model, table, class_variables: variables } = page.schema;
  const features = usedFeatures().length;
  find("title").replaceChildren(term(title || "Explorer", 60));
  const name = fromNotebook() ? "" : `${model}: `;
  find("subtitle").replaceChildren(`${name}${plural(variables.length, "class variable")}, ${plural(features, "feature")}`, ...(table && !fromNotebook() ? [" · ", term(table.name, 40)] : []));
  document.title = `${shorten(title || "Explorer")} · pmdc explorer`;
  const { pinned } = page.state;
  fill(find("tools"),
    button("Undo", () => move(-1), { id: "undo", disabled: !canUndo(), title: "Ctrl+Z" }),
    button("Redo", () => move(1), { id: "redo", disabled: !canRedo(), title: "Ctrl+Shift+Z" }),
    button(pinned ? "Stop comparing" : "Compare", pinned ? stopComparing : keepAsA, { id: "compare", "aria-pressed": String(Boolean(pinned)), title: "Keep this case as A and look at another as B" }),
    button("Save", openFiles, { id: "files", "aria-haspopup": "dialog" }));
}

function drawFooter() {
  const { pmdc, table } = page.schema;
  const notes = [
    table?.like_training && "These look like rows that the model was learned from: it is surer of them than of new ones.",
    !start.live && `A saved page: it answers what was asked when it was saved. Open the explorer to ask more: ${command()}`,
  ].filter(Boolean);
  fill(find("footer"), notes.map((text) => el("p", {}, text)), el("p", {}, `pmdc ${pmdc}. The probabilities are those of the model, not of the world.`));
}

/** On a narrow screen the parts of the page are far apart. */
function drawJumps() {
  const parts = { case: "Case", network: "States", why: "Why?", outcomes: "Outcomes", decision: "Prediction", next: "Ask next", sets: "Expect" };
  const jump = (id) => () => {
    if (id === "case") find("case-details").open = true;
    find(id).scrollIntoView();
    find(id).focus({ preventScroll: true });
  };
  fill(find("jump"), Object.entries(parts).map(([id, label]) => {
    find(id).setAttribute("tabindex", "-1");
    return button(label, jump(id));
  }));
}

/** The values of a case: those of its row, and what was edited. */
async function readRow({ index, edits }, asking) {
  const typical = ({ name, default: middle, values }) => [name, middle ?? values?.[0] ?? null];
  const base = index === null ? { values: Object.fromEntries(usedFeatures().map(typical)), true: null } : await ask(rowRequest(index), asking);
  return { base: base.values, row: { ...base.values, ...edits }, truth: base.true };
}

/** Say that answers are on their way; what is shown is dimmed if they take long. */
function setBusy(busy) {
  find("layout").setAttribute("aria-busy", String(busy));
}

function settle() {
  clearTimeout(timers.dim);
  find("main").classList.remove("late");
}

/** Ask all that the state of the page needs: first what a click waits for, then the rest. */
async function refresh() {
  const asking = newRound();
  const { state } = page;
  setBusy(true);
  clearTimeout(timers.dim);
  timers.dim = setTimeout(() => find("main").classList.add("late"), 250);
  drawHeader();
  drawRowTools();
  drawKnown();
  asking.requests.push(schemaRequest());
  try {
    const [layout, now, first] = await Promise.all([ask(graphRequest(state), asking), readRow(state, asking), state.pinned && readRow(state.pinned, asking)]);
    if (asking.signal.aborted) return;
    drawLayout(layout);
    drawEditor(now.base);
    const data = await predictions(state, now, first, asking);
    if (asking.signal.aborted) return;
    complain(page.notice);
    page.notice = "";
    announce(shown.data, data);
    drawNodes(data);
    drawDecision(data);
    drawComparison(data);
    settle();
    await askTheRest(state, now, first, asking);
    if (!asking.signal.aborted) setBusy(false);
  } catch (problem) {
    if (asking.signal.aborted) return;
    settle();
    complain(problem.message);
    [drawNext, drawOutcomes, drawSets, drawWhy].forEach((draw) => draw("No answer for this case."));
    drawComparison(null);
    setBusy(false);
  }
}

async function predictions(state, now, first, asking) {
  const question = (one, row) => ask(predictRequest(one, row, state.loss), asking);
  const nothing = { ...caseOf(state), given: {} };
  const [after, before, pinned] = await Promise.all([question(state, now.row), question(nothing, now.row), first && question(state.pinned, first.row)]);
  return {
    after: after.rows[0], before: before.rows[0], first: pinned && pinned.rows[0], warnings: after.warnings, truth: now.truth, row: now.row,
    firstRow: first && first.row, given: state.given, moved: Object.keys(state.given).length > 0,
  };
}

function askTheRest(state, now, first, asking) {
  const { why } = state;
  const part = (request, draw) => {
    const late = setTimeout(() => draw(null), 200);
    return ask(request, asking)
      .then((answer) => !asking.signal.aborted && draw(answer), (problem) => !asking.signal.aborted && draw(problem.message))
      .finally(() => clearTimeout(late));
  };
  const explains = page.schema.explains && why;
  if (!explains) drawWhy(null);
  const explanation = explains && (state.pinned ? differenceRequest(state.pinned, first.row, state, now.row, why) : explainRequest(state, now.row, why));
  const details = part(detailsRequest(state, now.row, state.loss, state.coverage), (answer) => {
    const row = answer?.rows ? answer.rows[0] : answer;
    drawOutcomes(row);
    drawSets(row, answer?.calibrated);
  });
  return Promise.all([explanation && part(explanation, drawWhy), details, part(askRequest(state, now.row, state.loss), drawNext)]);
}

/** Say which predictions have changed. */
function announce(earlier, now) {
  if (!earlier) return;
  const changed = page.schema.class_variables.map(({ name }) => name).filter((name) => !same(own(earlier.after.prediction, name), own(now.after.prediction, name)));
  const words = changed.slice(0, 4).map((name) => `${shorten(name)} is now ${shorten(show(own(now.after.prediction, name)))}`);
  const rest = changed.length > 4 ? ` and ${changed.length - 4} more` : "";
  say(`${changed.length ? `Predictions changed: ${words.join(", ")}${rest}.` : "Predictions are updated; the predicted states stay the same."} Expected loss ${amount(now.after.expected_loss)}.`);
}

function keys(event) {
  if (!(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "z") return;
  if (event.target.matches("input:not([type=range], [type=checkbox]), textarea") || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  move(event.shiftKey ? 1 : -1);
}

function onAddress(event) {
  const { state, wrong } = readState(location.hash);
  past.at = event.state?.at ?? past.at + 1;
  past.group = null;
  past.entries[past.at] = state;
  page.notice = wrong.join(" ");
  change(state);
}

async function begin() {
  try {
    page.schema = await ask(schemaRequest());
  } catch (problem) {
    return complain(problem.message);
  }
  const { state, wrong } = readState(location.hash.length > 1 ? location.hash : start.state || "");
  past.at = history.state?.at ?? 0;
  past.entries[past.at] = page.state = state;
  writeUrl(state, false);
  page.onchange = (group) => {
    setBusy(true);
    clearTimeout(timers.edit);
    timers.edit = setTimeout(refresh, group ? PAUSE_WHILE_EDITING : 0);
  };
  if (narrow.matches) find("case-details").open = false;
  startEditor();
  startCamera();
  drawJumps();
  drawFooter();
  window.addEventListener("popstate", onAddress);
  document.addEventListener("keydown", keys);
  find("viewport").setAttribute("tabindex", "0");
  page.notice = wrong.join(" ");
  await refresh();
  tellReady();
  if (start.server) showLive(start.server);
}

begin();
