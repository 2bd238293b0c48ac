// The state of the page: what is asked, never the answers. It is in the URL, and every change can be undone.

const EMPTY = { index: null, edits: {}, given: {}, loss: null, coverage: 0.9, why: null, pinned: null, focus: null, steps: 1, view: null };
const COVERAGES = [0.8, 0.9, 0.95];
const PAUSE = 1000;

const page = { state: EMPTY, schema: null, notice: "", onchange: () => {} };
const past = { entries: [], at: 0, group: null, time: 0 };
const framed = window.parent !== window;

/** The case of a state: a row, what was edited in it, and the known states. */
const caseOf = ({ index, edits, given }) => ({ index, edits, given });

function setState(patch, group = null) {
  const next = { ...page.state, ...patch };
  if (same(next, page.state)) return;
  const joined = group !== null && group === past.group && Date.now() - past.time < PAUSE;
  past.group = group;
  past.time = Date.now();
  if (!joined) past.at += 1;
  past.entries.length = past.at;
  past.entries[past.at] = next;
  writeUrl(next, !joined);
  change(next, group);
}

function change(next, group = null) {
  page.state = next;
  page.onchange(group);
}

const canUndo = () => past.at > 0;
const canRedo = () => past.at < past.entries.length - 1;

function move(step) {
  if (step < 0 ? !canUndo() : !canRedo()) return;
  if (!framed && history.state?.at === past.at) return history.go(step);
  if (!past.entries[past.at + step]) return;
  past.at += step;
  writeUrl(past.entries[past.at], false);
  change(past.entries[past.at]);
}

function fragmentOf(state) {
  const changed = Object.entries(state).filter(([name, value]) => !same(value, EMPTY[name]));
  return changed.length ? "#" + encodeURIComponent(JSON.stringify(Object.fromEntries(changed))) : "#";
}

function writeUrl(state, isNew) {
  try {
    history[isNew ? "pushState" : "replaceState"]({ at: past.at }, "", fragmentOf(state));
  } catch {
    // Documents without an address, such as those inside a notebook, have no history; undo works without it.
  }
}

/** Read the state from a fragment; what does not fit the model is left out and named. */
function readState(fragment) {
  let read = {};
  const wrong = [];
  try {
    read = JSON.parse(decodeURIComponent(fragment.replace(/^#/, "")) || "{}");
  } catch {
    wrong.push("The address of this page is not complete, so it starts anew.");
  }
  if (typeof read !== "object" || read === null || Array.isArray(read)) read = {};
  const state = { ...EMPTY, index: page.schema.table ? 0 : null, loss: page.schema.default_loss };
  Object.assign(state, readCase(read, wrong));
  if (page.schema.losses.some((one) => one.name === read.loss && !one.whole_batch)) state.loss = read.loss;
  if (COVERAGES.includes(read.coverage)) state.coverage = read.coverage;
  if (read.pinned) state.pinned = readCase(read.pinned, wrong);
  const stateOf = read.why && variable(read.why.variable)?.states;
  if (stateOf && stateOf.includes(read.why.state)) state.why = { variable: read.why.variable, state: read.why.state };
  if (variable(read.focus)) state.focus = read.focus;
  if ([1, 2, 3].includes(read.steps)) state.steps = read.steps;
  if (["graph", "list"].includes(read.view)) state.view = read.view;
  return { state, wrong };
}

function readCase(read, wrong) {
  const table = page.schema.table;
  const fits = Number.isInteger(read.index) && read.index >= 0 && table && read.index < table.n_rows;
  const edits = Object.entries(read.edits || {}).filter(([name]) => page.schema.features.some((one) => one.name === name));
  const { given, problems } = readGiven(read.given || {});
  wrong.push(...problems);
  return { index: fits ? read.index : table ? 0 : null, edits: Object.fromEntries(edits), given };
}

/** Check known states from outside the page, such as a file. */
function readGiven(read) {
  const given = {};
  const problems = [];
  for (const [name, value] of Object.entries(read)) {
    if (value === null) continue;
    const states = variable(name)?.states;
    const several = Array.isArray(value) ? value : [value];
    const unknown = states && several.filter((one) => !states.includes(one));
    if (!states) problems.push(`The model has no class variable ‘${shorten(name)}’.`);
    else if (unknown.length || !several.length)
      problems.push(`‘${shorten(name)}’ has no state ‘${unknown.map((one) => shorten(one)).join("’, ‘")}’. Its states: ${states.slice(0, 12).map((one) => shorten(one)).join(", ")}.`);
    else if (several.length < states.length) Object.defineProperty(given, name, { value: several.length > 1 ? several : several[0], enumerable: true });
  }
  return { given: { ...given }, problems };
}

const variable = (name) => page.schema.class_variables.find((one) => one.name === name);

/** Known states with one variable changed; undefined releases it. */
function withGiven(given, name, value) {
  const others = Object.entries(given).filter(([one]) => one !== name);
  return Object.fromEntries(value === undefined ? others : [...others, [name, value]]);
}

function withEdit(edits, name, value) {
  const others = Object.entries(edits).filter(([one]) => one !== name);
  return Object.fromEntries(value === undefined ? others : [...others, [name, value]]);
}

/** Click: fix a state or release its variable. With `add`, one state more or less is possible. */
function toggleState(name, state, add) {
  const now = own(page.state.given, name);
  const several = now === undefined ? [] : Array.isArray(now) ? now : [now];
  let next = several.includes(state) && !add ? [] : [state];
  if (add) next = several.includes(state) ? several.filter((one) => one !== state) : [...several, state];
  allowStates(name, next);
}

function allowStates(name, states) {
  const all = variable(name).states;
  const chosen = all.filter((one) => states.includes(one));
  const value = chosen.length === 0 || chosen.length === all.length ? undefined : chosen.length === 1 ? chosen[0] : chosen;
  setState({ given: withGiven(page.state.given, name, value) });
}
