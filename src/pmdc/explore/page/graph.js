// The graph: boxes over curves in a viewport that pans and zooms; or the same boxes as a list.

const FAR = 0.62;
const LEGIBLE = 0.34;
const LISTED = 12;
const MARGIN = 24;
const SVG = "http://www.w3.org/2000/svg";
const shown = { layout: null, nodes: new Map(), data: null, all: false, wanted: null };
const camera = { x: 0, y: 0, scale: 1, of: null };
const pointers = new Map();
const narrow = window.matchMedia("(max-width: 48rem)");

const isList = () => (page.state.view ?? (narrow.matches ? "list" : "graph")) === "list";

/** Make the boxes, if the layout is a new one. */
function drawLayout(layout) {
  const asList = isList();
  find("network").classList.toggle("as-list", asList);
  if (shown.layout !== layout) {
    shown.layout = layout;
    const numbers = new Map(page.schema.class_variables.map((one, i) => [one.name, i]));
    shown.nodes = new Map(layout.nodes.map(({ name }) => [name, makeNode(variable(name), numbers.get(name))]));
    for (const { name, x, y, width, height } of layout.nodes) {
      const { style } = shown.nodes.get(name).root;
      Object.assign(style, { left: `${x}px`, top: `${y}px`, width: `${width}px`, minHeight: `${height}px` });
    }
    const canvas = find("canvas");
    const focused = document.activeElement.id;
    Object.assign(canvas.style, { width: `${layout.width}px`, height: `${layout.height}px` });
    const order = layout.nodes.map(({ name }) => name).sort((a, b) => numbers.get(a) - numbers.get(b));
    canvas.replaceChildren(drawEdges(layout), ...order.map((name) => shown.nodes.get(name).root));
    if (focused) find(focused)?.focus({ preventScroll: true });
  }
  drawGraphTools(asList);
  drawLegend();
  drawMore();
  if (camera.of !== layout && !asList) {
    camera.of = layout;
    find("viewport").style.height = `${layout.height + 2 * MARGIN}px`;
    fit();
    if (camera.scale < LEGIBLE) {
      center(shown.wanted ?? page.state.why?.variable ?? topmost(layout), LEGIBLE);
      if (!shown.wanted) keepToEdges();
    }
  }
  if (shown.wanted !== null && shown.nodes.has(shown.wanted)) zoomTo(shown.wanted);
  shown.wanted = null;
}

const topmost = ({ nodes }) => nodes.reduce((top, one) => (one.y < top.y ? one : top)).name;

/** In a long list show the first class variables, those that are known and the one that is explained. */
function drawMore() {
  const names = page.schema.class_variables.map((one) => one.name).filter((name) => shown.nodes.has(name));
  const { given, why } = page.state;
  const short = isList() && !shown.all && names.length > LISTED + 2;
  names.forEach((name, i) => (shown.nodes.get(name).root.hidden = short && i >= LISTED && own(given, name) === undefined && why?.variable !== name));
  const showAll = () => {
    shown.all = true;
    drawMore();
    shown.nodes.get(names[LISTED]).root.querySelector(".node-name").focus();
  };
  fill(find("more-variables"), short && button(`Show all ${names.length} class variables`, showAll, { id: "all-variables" }));
}

function drawEdges({ width, height, edges }) {
  const make = (tag, attributes) => {
    const made = document.createElementNS(SVG, tag);
    Object.entries(attributes).forEach(([name, value]) => made.setAttribute(name, value));
    return made;
  };
  const svg = make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
  const head = make("marker", { id: "head", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, markerUnits: "userSpaceOnUse", orient: "auto" });
  head.append(make("path", { d: "M0 .5 8 4 0 7.5z" }));
  const defs = make("defs", {});
  defs.append(head);
  svg.append(defs);
  const strongest = Math.max(...edges.map((edge) => edge.strength ?? 0));
  for (const edge of edges) {
    const share = strongest > 0 ? Math.max(edge.strength ?? 0, 0) / strongest : 0.3;
    svg.append(make("path", { d: edge.path, class: "edge", "stroke-width": 1.2 + 2.6 * Math.sqrt(share), "marker-end": "url(#head)" }));
  }
  return svg;
}

function drawLegend() {
  const key = (kind, text) => el("span", {}, el("i", { class: `key ${kind}` }), text);
  fill(find("legend"),
    page.state.pinned ? [key("a", "A"), key("plain", "B")] : key("plain", "probability"), key("decided", "predicted"), key("known", "known"),
    !page.state.pinned && key("tick", "without the known states"),
    el("span", {}, "Click a state to fix it, again to release it. ",
      !isList() && "Shift+click for several. Drag to move the graph, Ctrl+scroll to zoom."));
}

/** Write the present probabilities into the boxes. */
function drawNodes(data = shown.data) {
  shown.data = data;
  if (data) shown.nodes.forEach((node) => node.update(data));
}

// Tools --------------------------------------------------------------------------------------------------------

function drawGraphTools(asList) {
  const { focus, steps } = page.state;
  const names = page.schema.class_variables.map((one) => one.name);
  const search = names.length > 6 && [
    el("label", { class: "hidden", for: "find-variable" }, "Find a class variable"),
    el("input", { type: "search", id: "find-variable", list: "variable-names", placeholder: "Find a class variable", autocomplete: "off", onchange: (event) => findVariable(event.target.value) }),
    el("datalist", { id: "variable-names" }, names.map((name) => el("option", { value: name }))),
  ];
  const focused = focus !== null && el("span", { class: "focused" },
    "Only ", term(focus, 30), " and its neighbours",
    el("label", {}, el("span", { class: "hidden" }, "Number of steps"),
      el("select", { id: "steps", onchange: (event) => setState({ steps: Number(event.target.value) }) },
        [1, 2, 3].map((one) => el("option", { value: one, selected: one === steps }, plural(one, "step"))))),
    button("Show all", () => setState({ focus: null, steps: 1 }), { id: "show-all" }));
  const view = button(asList ? "Show as graph" : "Show as list", () => setState({ view: asList ? "graph" : "list" }), { id: "view" });
  const zoom = !asList && el("span", { class: "zoom", role: "group", "aria-label": "Zoom" },
    button("−", () => zoomBy(1 / 1.3), { "aria-label": "Zoom out", id: "zoom-out" }),
    button("+", () => zoomBy(1.3), { "aria-label": "Zoom in", id: "zoom-in" }),
    button("Fit", fit, { "aria-label": "Fit the whole graph", id: "zoom-fit" }));
  fill(find("graph-tools"), search, focused, el("span", { class: "space" }), view, zoom);
}

function findVariable(text) {
  const wanted = text.trim().toLowerCase();
  const names = page.schema.class_variables.map((one) => one.name);
  const name = names.find((one) => one.toLowerCase() === wanted) ?? names.find((one) => one.toLowerCase().includes(wanted));
  if (!wanted) return;
  if (name === undefined) return say(`No class variable is called ${shorten(text)}.`);
  showVariable(name);
}

/** Bring a class variable into view, also if only others are shown now. */
function showVariable(name) {
  if (shown.nodes.has(name)) return zoomTo(name);
  shown.wanted = name;
  setState({ focus: null, steps: 1 });
}

// The camera ---------------------------------------------------------------------------------------------------

function place() {
  const { x, y, scale } = camera;
  const canvas = find("canvas");
  canvas.style.transform = `translate(${x}px, ${y}px) scale(${scale})`;
  canvas.style.setProperty("--unscaled", Math.min(1 / scale, 4));
  canvas.classList.toggle("from-far", scale < FAR);
  canvas.classList.toggle("names-only", scale < LEGIBLE);
}

function fit() {
  const { clientWidth, clientHeight } = find("viewport");
  const { width, height } = shown.layout;
  camera.scale = Math.min((clientWidth - 2 * MARGIN) / width, (clientHeight - 2 * MARGIN) / height, 1);
  camera.x = (clientWidth - width * camera.scale) / 2;
  camera.y = Math.max(MARGIN, (clientHeight - height * camera.scale) / 2);
  place();
}

/** Bring a class variable to the middle. */
function center(name, scale) {
  const { clientWidth, clientHeight } = find("viewport");
  const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = shown.nodes.get(name).root;
  camera.scale = scale;
  camera.x = clientWidth / 2 - (offsetLeft + offsetWidth / 2) * scale;
  camera.y = clientHeight / 2 - (offsetTop + offsetHeight / 2) * scale;
  place();
}

/** Leave no space beside a graph that is larger than the viewport. */
function keepToEdges() {
  const { clientWidth, clientHeight } = find("viewport");
  const within = (at, room, size) => (size + 2 * MARGIN <= room ? (room - size) / 2 : Math.min(MARGIN, Math.max(room - size - MARGIN, at)));
  camera.x = within(camera.x, clientWidth, shown.layout.width * camera.scale);
  camera.y = within(camera.y, clientHeight, shown.layout.height * camera.scale);
  place();
}

function zoomBy(factor, at) {
  const box = find("viewport").getBoundingClientRect();
  const [x, y] = at ? [at.x - box.left, at.y - box.top] : [box.width / 2, box.height / 2];
  const scale = Math.min(2, Math.max(0.08, camera.scale * factor));
  camera.x = x - ((x - camera.x) * scale) / camera.scale;
  camera.y = y - ((y - camera.y) * scale) / camera.scale;
  camera.scale = scale;
  place();
}

/** Bring a class variable to the middle, at a size that can be read, with the focus. */
function zoomTo(name) {
  const node = shown.nodes.get(name)?.root;
  if (!node) return;
  if (isList()) {
    shown.all ||= node.hidden;
    drawMore();
    node.scrollIntoView({ block: "center" });
  } else center(name, Math.max(camera.scale, 1));
  node.querySelector(".node-name").focus({ preventScroll: true });
}

/** Move a box into view if it has the focus. */
function reveal(event) {
  const viewport = find("viewport");
  viewport.scrollTo(0, 0);
  if (isList() || event.target === viewport || !event.target.matches(":focus-visible")) return;
  const [box, inner] = [viewport.getBoundingClientRect(), event.target.getBoundingClientRect()];
  const shift = (from, to, low, high) => (from < low + 20 ? low + 20 - from : to > high - 20 ? high - 20 - to : 0);
  camera.x += shift(inner.left, inner.right, box.left, box.right);
  camera.y += shift(inner.top, inner.bottom, box.top, box.bottom);
  place();
}

function startCamera() {
  const viewport = find("viewport");
  viewport.addEventListener("focusin", reveal);
  viewport.addEventListener("wheel", (event) => {
    if (isList() || !(event.ctrlKey || event.metaKey)) return; // otherwise the page scrolls
    event.preventDefault();
    zoomBy(Math.exp(-event.deltaY * 0.01), { x: event.clientX, y: event.clientY });
  }, { passive: false });
  viewport.addEventListener("keydown", (event) => {
    const way = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] }[event.key];
    if (isList() || event.ctrlKey || event.metaKey || event.altKey) return;
    if (way && event.target === viewport) [camera.x, camera.y] = [camera.x + way[0], camera.y + way[1]];
    else if (event.key === "+" || event.key === "=") return zoomBy(1.3);
    else if (event.key === "-") return zoomBy(1 / 1.3);
    else return;
    event.preventDefault();
    place();
  });
  viewport.addEventListener("pointerdown", (event) => {
    if (!isList() && event.button === 0) pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, moved: 0 });
  });
  viewport.addEventListener("pointermove", drag);
  for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) viewport.addEventListener(end, drop);
  viewport.addEventListener("click", (event) => {
    if (!viewport.dragged) return;
    viewport.dragged = false;
    event.stopPropagation();
    event.preventDefault();
  }, true);
  new ResizeObserver(() => shown.layout && !isList() && place()).observe(viewport);
  narrow.addEventListener("change", () => page.onchange());
}

function drag(event) {
  const pointer = pointers.get(event.pointerId);
  if (!pointer) return;
  const other = [...pointers.values()].find((one) => one !== pointer);
  const [dx, dy] = [event.clientX - pointer.x, event.clientY - pointer.y];
  pointer.moved += Math.hypot(dx, dy);
  if (pointer.moved < 5) return;
  find("viewport").dragged = true;
  find("viewport").setPointerCapture(event.pointerId);
  if (other) {
    const distance = (x, y) => Math.hypot(x - other.x, y - other.y) || 1;
    zoomBy(distance(event.clientX, event.clientY) / distance(pointer.x, pointer.y), { x: (event.clientX + other.x) / 2, y: (event.clientY + other.y) / 2 });
  } else {
    camera.x += dx;
    camera.y += dy;
    place();
  }
  Object.assign(pointer, { x: event.clientX, y: event.clientY });
}

function drop(event) {
  pointers.delete(event.pointerId);
  if (!pointers.size) setTimeout(() => (find("viewport").dragged = false), 0);
}
