// Words, numbers and elements: how values are written, and the only way by which text gets into the page.

const find = (id) => document.getElementById(id);
const own = (object, name) => (Object.hasOwn(object, name) ? object[name] : undefined);

/** Make an element; `on...` attributes are listeners, `style` is a map of properties, strings become text. */
function el(tag, attributes, ...content) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") Object.entries(value).forEach(([key, one]) => made.style.setProperty(key, one));
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...content.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return made;
}

function button(label, onclick, attributes) {
  return el("button", { type: "button", onclick, ...attributes }, label);
}

/** Replace the content of an element, and keep the focus on the control of the same id. */
function fill(parent, ...content) {
  const focused = parent.contains(document.activeElement) ? document.activeElement.id : "";
  const opened = [...parent.querySelectorAll("details[open][id]")].map((one) => one.id);
  parent.replaceChildren(...content.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  opened.forEach((id) => find(id)?.setAttribute("open", ""));
  if (focused) find(focused)?.focus({ preventScroll: true });
}

// Control characters and marks that change the direction of what follows are made visible.
const clean = (text) =>
  String(text).replace(/[\u202a-\u202e\u2066-\u2069\u0000-\u0008\u000e-\u001f]/g, "\ufffd").replace(/\s+/g, " ");

function shorten(text, limit = 60) {
  const line = clean(text).trim() || "(empty)";
  const letters = [...line];
  return letters.length <= limit ? line : letters.slice(0, limit - 1).join("").trimEnd() + "…";
}

/** A name or state: isolated from the direction of the text around it, whole in the title if it is long, and broken at
 * underscores if it has to be. */
function term(text, limit = 60) {
  const whole = typeof text === "string" ? clean(text) : show(text);
  const short = shorten(whole, limit);
  const parts = short.split(/(?<=_)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));
  return el("bdi", { title: short === whole ? null : whole }, parts);
}

function show(value) {
  if (value === null || value === undefined) return "missing";
  if (typeof value === "number") return number(value);
  return clean(value).replace(/^(\d{4}-\d\d-\d\d)T(?:00:00:00)?/, (all, day) => (all.endsWith("T") ? day + " " : day));
}

const minus = (text) => text.replace("-", "−");

function number(value) {
  if (Number.isInteger(value) && Math.abs(value) < 1e7) return minus(String(value));
  return minus(String(Number(value.toPrecision(4))));
}

function percent(probability) {
  if (probability > 0 && probability < 0.01) return "<1\u00a0%";
  if (probability < 1 && probability > 0.99) return ">99\u00a0%";
  return `${Math.round(100 * probability)}\u00a0%`;
}

/** A probability that is never shown as zero: "1 in 24 thousand" if it is small. */
function odds(probability) {
  if (probability >= 0.001) return probability < 0.01 ? `${(100 * probability).toPrecision(2)}\u00a0%` : percent(probability);
  if (probability < 1e-9) return "less than 1 in a billion";
  return `1 in ${new Intl.NumberFormat("en", { notation: "compact", compactDisplay: "long", maximumSignificantDigits: 2 }).format(1 / probability)}`;
}

function signed(value) {
  if (Math.abs(value) < 0.005) return "0.00";
  return (value > 0 ? "+" : "−") + Math.abs(value).toFixed(2);
}

/** Numbers of at most four digits; a loss that is nearly zero stays different from zero. */
const amount = (value) => (value !== 0 && Math.abs(value) < 0.001 ? "<0.001" : minus(value.toFixed(3)));

const plural = (count, one, many = one + "s") => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

/** "a, b and c", of texts or elements. */
function listed(items, last = " and ") {
  return items.flatMap((one, i) => (i === 0 ? [one] : [i === items.length - 1 ? last : ", ", one]));
}

/** "party = Democrat", as elements. */
function known(name, value) {
  const states = Array.isArray(value) ? listed(value.map((one) => term(one)), " or ") : [term(value)];
  return el("span", { class: "pair" }, term(name), " = ", states);
}

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/** Say what changed to those who do not see it. */
function say(text) {
  find("said").textContent = text;
}
