// The editor of the case: a field for each feature, typed from the schema.

const PAGE_OF_FIELDS = 40;
const editor = { fields: new Map(), row: null, limit: PAGE_OF_FIELDS, search: "" };

const usedFeatures = () => page.schema.features.filter((one) => one.kind !== "ignored");

function startEditor() {
  const features = usedFeatures();
  const unused = page.schema.features.length - features.length;
  const many = features.length > 12;
  const search = many && el("div", { class: "search" },
    el("label", { class: "hidden", for: "find-feature" }, "Find a feature"),
    el("input", { type: "search", id: "find-feature", placeholder: `Find one of ${features.length} features`, oninput: searchFields }));
  find("fields").replaceChildren(...[search,
    el("p", { class: "note", id: "edited" }),
    el("div", { id: "field-list" }),
    el("div", { id: "more-fields" }),
    unused > 0 && el("p", { class: "note" }, `${plural(unused, "further column")} of the table ${unused === 1 ? "is" : "are"} not used by the model.`),
  ].filter(Boolean));
}

/** Bring a field into view, and set the focus to it. */
function showField(name) {
  find("case-details").open = true;
  Object.assign(editor, { search: "", limit: Infinity });
  drawEditor(editor.row);
  const control = find(editor.fields.get(name).id);
  control.scrollIntoView({ block: "center" });
  control.focus({ preventScroll: true });
}

function searchFields(event) {
  Object.assign(editor, { search: event.target.value.trim().toLowerCase(), limit: PAGE_OF_FIELDS });
  drawEditor(editor.row);
}

/** Show the fields of a row with its edits; fields that are there stay, so that the focus does. */
function drawEditor(row) {
  editor.row = row;
  const { edits } = page.state;
  const all = usedFeatures();
  const found = all.filter(({ name }) => name.toLowerCase().includes(editor.search));
  const first = found.slice(0, editor.limit);
  const edited = found.slice(editor.limit).filter(({ name }) => own(edits, name) !== undefined);
  const wanted = [...edited, ...first];
  for (const feature of wanted) {
    if (!editor.fields.has(feature.name)) editor.fields.set(feature.name, makeField(feature, all.indexOf(feature)));
    editor.fields.get(feature.name).update(own(row, feature.name) ?? null, own(edits, feature.name));
  }
  reorder(find("field-list"), wanted.map(({ name }) => editor.fields.get(name).root));
  const left = found.length - first.length;
  fill(find("more-fields"), left > 0 && button(`Show ${Math.min(left, PAGE_OF_FIELDS)} more of ${found.length}`, () => {
    editor.limit += PAGE_OF_FIELDS;
    drawEditor(editor.row);
  }, { id: "more-fields-button" }), !found.length && el("p", { class: "note" }, "No feature has this name."));
  const count = Object.keys(edits).length;
  fill(find("edited"), count > 0
    ? [`${plural(count, "value")} changed. `, button("Reset all", () => setState({ edits: {} }), { id: "reset-all", class: "link" })]
    : page.schema.table ? "Change a value to see what the prediction would be." : "A new case, with the typical values of the training rows.");
}

function edit(name, value) {
  const original = own(editor.row, name) ?? null;
  setState({ edits: withEdit(page.state.edits, name, same(value, original) ? undefined : value) }, `edit ${name}`);
}

function makeField(feature, number) {
  const id = `field-${number}`;
  const { name, kind } = feature;
  const control = { number: numberControl, category: categoryControl }[kind] ?? timeControl;
  const { parts, set, typical } = control(feature, id);
  const missing = el("input", { type: "checkbox", id: `${id}-missing`, "aria-label": `${shorten(name)} is missing`, onchange: () => edit(name, missing.checked ? null : present()) });
  const reset = button("Reset", () => { edit(name, own(editor.row, name) ?? null); missing.focus(); },
    { class: "link reset", id: `${id}-reset`, "aria-label": `Reset ${shorten(name)}` });
  const was = el("span", { class: "was" });
  const root = el("div", { class: "field", role: "group", "aria-labelledby": `${id}-label` },
    el("div", { class: "field-head" }, el("label", { for: id, id: `${id}-label` }, term(name, 70)),
      el("label", { class: "missing" }, missing, "missing")),
    parts,
    el("div", { class: "field-foot" }, was, reset));
  const present = () => own(editor.row, name) ?? typical;

  function update(original, edited) {
    const changed = edited !== undefined;
    const value = changed ? edited : original;
    root.classList.toggle("changed", changed);
    root.classList.toggle("is-missing", value === null);
    missing.checked = value === null;
    was.replaceChildren(...(changed ? ["was ", term(original, 30)] : []));
    set(value);
  }
  return { root, update, id };
}

/** Four digits, and at least two decimals: what fits into the box. */
function brief(value) {
  if (Number.isInteger(value)) return value;
  const decimals = 3 - Math.floor(Math.log10(Math.abs(value)));
  return Number(value.toFixed(Math.min(20, Math.max(2, decimals))));
}

function numberControl({ name, distribution, default: middle }, id) {
  const { min, max, whole, counts } = distribution ?? {};
  const ranged = Number.isFinite(min) && Number.isFinite(max) && max > min;
  const send = (event) => event.target.value !== "" && event.target.checkValidity() && edit(name, Number(event.target.value));
  const box = el("input", { type: "number", id, step: "any", oninput: send });
  const slider = ranged && el("input", { type: "range", min, max, step: whole ? 1 : (max - min) / 200, "aria-label": `${shorten(name)}, slider`, oninput: send });
  const histogram = ranged && counts && bars(counts);
  function set(value) {
    if (document.activeElement !== box || value === null || Number(box.value) !== value) box.value = value === null ? "" : brief(value);
    if (slider) slider.value = value ?? (min + max) / 2;
    histogram?.mark(value === null ? null : (value - min) / (max - min));
  }
  const typical = middle ?? (ranged ? (min + max) / 2 : 0);
  const range = ranged && el("span", { class: "range" }, el("span", {}, number(min)), el("span", {}, number(max)));
  return { parts: el("div", { class: "number" }, box, el("div", { class: "slider" }, histogram?.root, slider, range)), set, typical };
}

/** A small histogram, with a line where the value is. */
function bars(counts) {
  const highest = Math.max(...counts, 1);
  const line = el("i", { class: "value" });
  const root = el("div", { class: "histogram", "aria-hidden": "true" },
    counts.map((count) => el("b", { style: { height: count ? `${Math.max(8, (100 * count) / highest)}%` : "0" } })), line);
  const mark = (share) => {
    line.hidden = share === null;
    line.style.left = `${100 * Math.min(1, Math.max(0, share ?? 0))}%`;
  };
  return { root, mark };
}

function categoryControl({ name, values, other, distribution }, id) {
  const unknown = el("option", { hidden: true });
  const empty = el("option", { value: "missing", hidden: true }, "missing");
  const label = (value, i) => shorten(show(value)) + (distribution?.counts ? ` (${distribution.counts[i]})` : "");
  const list = el("select", { id, onchange: () => Number.isInteger(Number(list.value)) && edit(name, values[Number(list.value)]) },
    empty, values.map((value, i) => el("option", { value: i }, label(value, i))), unknown);
  function set(value) {
    const place = values.findIndex((one) => same(one, value));
    unknown.hidden = true;
    if (value === null) list.value = "missing";
    else if (place >= 0) list.value = String(place);
    else {
      Object.assign(unknown, { hidden: false, value: "unknown", textContent: `${shorten(show(value))} (${other ? "counts as “other”" : "not seen in training"})` });
      list.value = "unknown";
    }
  }
  return { parts: list, set, typical: values[0] ?? null };
}

function timeControl({ name, kind, distribution, default: middle }, id) {
  const timed = kind === "date" && [middle, distribution?.min, distribution?.max].some((one) => typeof one === "string" && one.includes("T"));
  const type = kind === "time" ? "time" : timed ? "datetime-local" : "date";
  const box = el("input", { type, id, step: kind === "time" || timed ? 1 : null, oninput: () => box.value && edit(name, full(box.value)) });
  const full = (text) => (type !== "date" && text.match(/:/g).length === 1 ? `${text}:00` : text);
  const shownAs = (value) => (type === "datetime-local" && !value.includes("T") ? `${value}T00:00:00` : type === "date" ? value.slice(0, 10) : value.slice(0, 19));
  function set(value) {
    const text = value === null ? "" : shownAs(String(value));
    if (full(box.value || "0:0:0") !== text) box.value = text;
    const [low, high, at] = [distribution?.min, distribution?.max, value].map((one) => seconds(one));
    histogram?.mark(value === null || !(high > low) ? null : (at - low) / (high - low));
  }
  const histogram = distribution?.counts && bars(distribution.counts);
  const range = histogram && el("span", { class: "range" }, el("span", {}, show(distribution.min)), el("span", {}, show(distribution.max)));
  return { parts: el("div", { class: "time" }, box, histogram && el("div", { class: "slider" }, histogram.root, range)), set, typical: middle ?? distribution?.min ?? null };
}

const seconds = (text) => (text ? Date.parse(text.includes("-") ? text : `1970-01-01T${text}`) : NaN);
