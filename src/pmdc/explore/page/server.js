// Questions and answers: from the server, or in an exported page from its record. The newest question wins.

const start = JSON.parse(find("start").textContent);
const answered = new Map();
const KEPT = 300;

class NotRecorded extends Error {}

/** A round of questions, all about one state of the page; it ends when the next begins. */
const round = { controller: new AbortController(), requests: [] };

function newRound() {
  round.controller.abort();
  round.controller = new AbortController();
  round.requests = [];
  return { signal: round.controller.signal, requests: round.requests };
}

async function ask(request, { signal, requests } = {}) {
  requests?.push(request);
  const { key, path, body } = request;
  if (!start.live) return recorded(key);
  if (!answered.has(key)) {
    const answer = await send(path, body, signal);
    if (answered.size >= KEPT) answered.delete(answered.keys().next().value);
    answered.set(key, answer);
  }
  return answered.get(key);
}

function recorded(key) {
  if (Object.hasOwn(start.recorded, key)) return start.recorded[key];
  throw new NotRecorded(`Not recorded in this page. Open the explorer to ask: ${command()}`);
}

/** In a notebook the title is the class of the model, because there is no file. */
const fromNotebook = () => page.schema && page.schema.title === page.schema.model;

function command() {
  if (fromNotebook()) return "model.explore(X, Y)";
  const { title, table } = page.schema || {};
  return ["pmdc explore", title || "model.skops", table?.name].filter(Boolean).join(" ");
}

async function send(path, body, signal) {
  let answer;
  const options = body === null ? {} : { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  try {
    answer = await fetch("." + path, { ...options, signal, cache: "no-store" });
  } catch (problem) {
    if (signal?.aborted) throw problem;
    throw new Error(`The explorer does not answer: it was stopped or cannot be reached. Start it again (${command()}) and reload this page.`);
  }
  if (answer.ok) return answer.headers.get("Content-Type")?.includes("json") ? answer.json() : answer.text();
  let message = `The server answered ${answer.status}.`;
  try {
    message = (await answer.json()).error.message;
  } catch {
    // Not one of the explorer's own messages.
  }
  throw new Error(message);
}

// The questions ------------------------------------------------------------------------------------------------

const schemaRequest = () => ({ key: "GET /schema", path: "/schema", body: null });
const rowRequest = (index) => ({ key: `GET /rows/${index}`, path: `/rows/${index}`, body: null });

function graphRequest({ focus, steps }) {
  const query = focus === null ? "" : `?focus=${encodeURIComponent(focus)}&steps=${steps}`;
  return { key: `GET /graph${query}`, path: `/graph${query}`, body: null };
}

/** JSON with sorted names, which Python writes in the same way. */
function sorted(map) {
  const names = Object.keys(map).sort();
  return `{${names.map((name) => `${JSON.stringify(name)}:${JSON.stringify(own(map, name))}`).join(",")}}`;
}

const editsOf = (edits) => (Object.keys(edits).length ? ` edits ${sorted(edits)}` : "");
const caseKey = ({ index, given, edits }) => `${index} ${sorted(given)}${editsOf(edits)}`;
const orNull = (given) => (Object.keys(given).length ? given : null);

/** Marginals and the decision: all that a click has to wait for. */
function predictRequest(one, row, loss) {
  const { index, edits, given } = one;
  return {
    key: `predict ${index} ${sorted(given)} ${loss} null${editsOf(edits)}`,
    path: "/predict",
    body: { rows: [row], given: orNull(given), loss },
  };
}

function detailsRequest(one, row, loss, coverage) {
  const { index, edits, given } = one;
  return {
    key: `predict ${index} ${sorted(given)} ${loss} ${coverage}${editsOf(edits)}`,
    path: "/predict",
    body: { rows: [row], given: orNull(given), loss, marginals: false, top: 10, coverage },
  };
}

function askRequest(one, row, loss) {
  const { index, edits, given } = one;
  return {
    key: `ask ${index} ${sorted(given)} ${loss}${editsOf(edits)}`,
    path: "/ask",
    body: { row, given: orNull(given), loss },
  };
}

/** Known states for an explanation: single ones, of other class variables. */
function singles(given, name) {
  return Object.fromEntries(Object.entries(given).filter(([one, value]) => one !== name && !Array.isArray(value)));
}

function explainRequest(one, row, why) {
  const given = singles(one.given, why.variable);
  return {
    key: `explain ${one.index} ${sorted(given)} ${why.variable} ${JSON.stringify(why.state)}${editsOf(one.edits)}`,
    path: "/explain",
    body: { row, given: orNull(given), variable: why.variable, state: why.state, index: one.index },
  };
}

function differenceRequest(first, firstRow, second, secondRow, why) {
  const [a, b] = [first, second].map((one) => ({ ...one, given: singles(one.given, why.variable) }));
  return {
    key: `compare ${caseKey(a)} | ${caseKey(b)} | ${why.variable} | ${JSON.stringify(why.state)}`,
    path: "/explain",
    body: {
      row: secondRow, given: orNull(b.given), variable: why.variable, state: why.state, index: second.index,
      compare: { row: firstRow, given: orNull(a.given) },
    },
  };
}
