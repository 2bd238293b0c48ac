// The rows of the table: one before, one after, and a dialog to find others.

const PAGE_OF_ROWS = 50;

const rowName = (index) => `row ${index + (page.schema.table?.first_number ?? 0)}`;

/** The rows that can be shown: in an exported page those in its record. */
function recordedRows() {
  if (start.live) return null;
  return Object.keys(start.recorded).map((key) => /^GET \/rows\/(\d+)$/.exec(key)).filter(Boolean).map((found) => Number(found[1])).sort((a, b) => a - b);
}

const chooseRow = (index) => setState({ index, edits: {}, given: {} });

function drawRowTools() {
  const { table } = page.schema;
  if (!table) return;
  const { index } = page.state;
  const first = table.first_number;
  const rows = recordedRows();
  const before = rows ? rows.filter((one) => one < index).pop() : index > 0 ? index - 1 : undefined;
  const after = rows ? rows.find((one) => one > index) : index < table.n_rows - 1 ? index + 1 : undefined;
  const box = el("input", { type: "number", id: "row-number", min: first, max: first + table.n_rows - 1, value: index + first, onchange: typed });
  function typed() {
    if (box.value !== "" && box.checkValidity()) chooseRow(Number(box.value) - first);
    else {
      box.value = page.state.index + first;
      say(`Rows are numbered from ${first} to ${first + table.n_rows - 1}.`);
    }
  }
  fill(find("row-tools"),
    button("‹", () => chooseRow(before), { id: "row-before", "aria-label": "Row before", disabled: before === undefined }),
    el("label", { for: "row-number" }, "Row"), box, el("span", { class: "of" }, `of ${table.n_rows.toLocaleString("en")}`),
    button("›", () => chooseRow(after), { id: "row-after", "aria-label": "Row after", disabled: after === undefined }),
    button("Find rows", openRows, { id: "find-rows", "aria-haspopup": "dialog" }));
}

function openRows() {
  const query = { search: "", filters: [], offset: 0, limit: PAGE_OF_ROWS };
  const chips = el("div", { class: "chips" });
  const summary = el("p", { class: "note", role: "status" });
  const list = el("ul", { class: "rows" });
  const more = el("div", {});
  let controller = new AbortController();

  async function load(offset = 0) {
    controller.abort();
    controller = new AbortController();
    const { signal } = controller;
    query.offset = offset;
    fill(more);
    try {
      const found = start.live ? await send("/rows", query, signal) : fromRecord(query);
      if (signal.aborted) return;
      const errors = query.filters.some((one) => one.error || one.of === "predicted") && found.predicted < found.n_rows;
      summary.textContent = `${plural(found.found, "row")} of ${found.n_rows.toLocaleString("en")}` + (errors ? `; predicted so far: ${found.predicted.toLocaleString("en")}` : "");
      if (offset === 0) list.replaceChildren();
      const lines = found.rows.map(line);
      list.append(...lines);
      if (offset > 0) lines[0]?.querySelector("button").focus();
      const rest = found.found - offset - found.rows.length;
      fill(more, rest > 0 && button(`Show more (${rest.toLocaleString("en")} left)`, () => load(offset + PAGE_OF_ROWS)));
    } catch (problem) {
      if (!signal.aborted) summary.textContent = problem.message;
    }
  }

  function line({ index, text, true: truth, predicted, wrong }) {
    const many = wrong?.length > 4;
    const judged = truth && predicted && Object.values(truth).some((one) => one !== null);
    const verdict = judged && (wrong.length
      ? el("span", { class: "bad" }, "wrong: ", listed(wrong.slice(0, 4).map((one) => term(one, 30)), many ? ", " : " and "), many && ` and ${wrong.length - 4} more`)
      : el("span", { class: "good" }, "all right"));
    return el("li", {}, el("button", { type: "button", onclick: () => { dialog.close(); chooseRow(index); } },
      el("strong", {}, rowName(index)), " ", verdict, el("span", { class: "text" }, term(text, 200))));
  }

  function drawChips() {
    fill(chips, query.filters.map((filter, i) => el("span", { class: "chip" }, describe(filter),
      button("×", () => { query.filters.splice(i, 1); drawChips(); load(); }, { "aria-label": "Remove this filter" }))));
  }
  const add = (filter) => { query.filters.push(filter); drawChips(); load(); };
  const search = el("input", { type: "search", id: "row-search", placeholder: "Search in the values", oninput: () => { query.search = search.value; load(); } });
  const dialog = openDialog("Find rows",
    el("label", { class: "hidden", for: "row-search" }, "Search in the values"), search,
    start.live && filterForm(add), chips, summary, list, more);
  dialog.classList.add("wide");
  load();
}

function fromRecord() {
  const rows = recordedRows();
  const found = rows.map((index) => ({ index, text: Object.entries(start.recorded[`GET /rows/${index}`].values).slice(0, 8).map(([name, value]) => `${name} ${show(value)}`).join(" · ") }));
  return { n_rows: page.schema.table.n_rows, found: found.length, predicted: 0, rows: found };
}

function describe(filter) {
  if (filter.feature && filter.values) return [term(filter.feature, 30), " = ", term(filter.values[0], 30)];
  if (filter.feature) return [term(filter.feature, 30), ` from ${filter.min ?? "any"} to ${filter.max ?? "any"}`];
  if (filter.state !== undefined) return [filter.of === "true" ? "true " : "predicted ", known(filter.variable, filter.state)];
  return { none: "no error", any: "any error", variable: ["wrong: ", filter.variable && term(filter.variable, 30)] }[filter.error];
}

/** What rows can be chosen by: errors, states and features. */
function filterForm(add) {
  const { class_variables: variables, table } = page.schema;
  const features = usedFeatures();
  const option = (kind, i, text) => el("option", { value: `${kind} ${i}` }, shorten(text, 50));
  const kinds = el("select", { id: "filter-kind", onchange: drawValues },
    el("option", { value: "" }, "Filter by …"),
    table.known.length > 0 && el("optgroup", { label: "Errors" }, el("option", { value: "any" }, "any class variable wrong"),
      el("option", { value: "none" }, "no class variable wrong"), table.known.map((name, i) => option("wrong", i, `${name} wrong`))),
    table.known.length > 0 && el("optgroup", { label: "True states" }, table.known.map((name, i) => option("true", i, name))),
    el("optgroup", { label: "Predicted states" }, variables.map(({ name }, i) => option("predicted", i, name))),
    el("optgroup", { label: "Features" }, features.slice(0, 1000).map(({ name }, i) => option("feature", i, name))));
  const values = el("span", { class: "values" });
  const done = button("Add filter", () => { add(chosen()); kinds.value = ""; drawValues(); }, { id: "add-filter", class: "main" });
  let chosen;
  const choice = (label, states, use) => {
    const list = el("select", { "aria-label": label, id: "filter-value" }, states.map((state, i) => el("option", { value: i }, shorten(show(state)))));
    return [list, () => use(states[Number(list.value)])];
  };
  const nothing = (filter) => [[], () => filter];
  function controls(kind, i) {
    if (kind === "any" || kind === "none") return nothing({ error: kind });
    if (kind === "wrong") return nothing({ error: "variable", variable: table.known[i] });
    if (kind === "true" || kind === "predicted") {
      const name = kind === "true" ? table.known[i] : variables[i].name;
      return choice("State", variable(name).states, (state) => ({ variable: name, state, of: kind }));
    }
    const feature = features[i];
    if (feature.kind === "category") return choice("Value", [...feature.values, null], (value) => ({ feature: feature.name, values: [value] }));
    return span(feature);
  }
  function drawValues() {
    const [kind, i] = kinds.value.split(" ");
    done.hidden = !kind;
    values.replaceChildren();
    if (!kind) return;
    let made;
    [made, chosen] = controls(kind, i);
    values.append(...[made].flat());
  }
  drawValues();
  return el("div", { class: "filters" }, el("label", { class: "hidden", for: "filter-kind" }, "Filter by"), kinds, values, done);
}

/** From and to, or missing. */
function span(feature) {
  const type = { number: "number", date: "date", time: "time" }[feature.kind];
  const [low, high] = ["from", "to"].map((word) => el("input", { type, step: "any", "aria-label": word, placeholder: word }));
  const missing = el("input", { type: "checkbox", onchange: () => [low, high].forEach((box) => (box.disabled = missing.checked)) });
  const read = (box) => (box.value === "" ? undefined : type === "number" ? Number(box.value) : box.value);
  const use = () => (missing.checked ? { feature: feature.name, values: [null] } : { feature: feature.name, min: read(low), max: read(high) });
  return [[low, high, el("label", { class: "missing" }, missing, "missing")], use];
}
