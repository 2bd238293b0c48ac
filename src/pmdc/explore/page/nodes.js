// A class variable as a box: its states with their probabilities, before and after what is known.

const SHOWN = 6;
const expanded = new Set();

function makeNode(classVariable, number) {
  const { name, states } = classVariable;
  const id = `node-${number}`;
  const verdict = el("span", { class: "verdict" });
  const buttons = states.map((state, i) => stateButton(name, state, `${id}-${i}`));
  const list = el("div", { class: "states" }, buttons.map((one) => one.root));
  const others = states.length > SHOWN && button("", () => expand(name, !expanded.has(name)), { class: "others", id: `${id}-more` });
  const far = el("button", { type: "button", class: "far", id: `${id}-far`, onclick: () => zoomTo(name) }, term(name, 40), el("span"));
  const root = el("div", { class: "node", role: "group", id, "aria-labelledby": `${id}-name` },
    far,
    el("div", { class: "near" },
      el("div", { class: "node-head" },
        button(term(name, 60), () => openMenu(name), { class: "node-name", id: `${id}-name`, "aria-haspopup": "dialog", title: clean(name) }),
        verdict,
        button("Why?", () => openWhy(name), { class: "why", id: `${id}-why`, "aria-label": `Why? ${shorten(name)}` })),
      list,
      others));
  root.addEventListener("keydown", moveInside);

  function update(data) {
    const probabilities = data.after.marginals[name];
    const order = states.map((_, i) => i);
    if (states.length > SHOWN) order.sort((i, j) => probabilities[j] - probabilities[i]);
    buttons.forEach((one, i) => one.update(data, i));
    reorder(list, order.map((i) => buttons[i].root));
    const open = expanded.has(name);
    order.forEach((i, place) => (buttons[i].root.hidden = !open && place >= SHOWN && own(data.given, name) === undefined));
    if (others) others.textContent = open ? "Fewer states" : plural(list.querySelectorAll(".state[hidden]").length, "other state");
    if (others) others.setAttribute("aria-expanded", String(open));
    root.classList.toggle("expanded", open);
    const decision = own(data.after.prediction, name);
    const truth = data.truth && own(data.truth, name);
    const isKnown = own(data.given, name) !== undefined;
    const judged = truth !== null && truth !== undefined && !isKnown;
    verdict.textContent = judged ? (same(truth, decision) ? "right" : "wrong") : isKnown ? "known" : "";
    verdict.className = "verdict " + (judged ? (same(truth, decision) ? "good" : "bad") : "");
    root.classList.toggle("is-known", isKnown);
    far.lastChild.replaceChildren(term(decision, 40), ` ${percent(probabilities[states.findIndex((one) => same(one, decision))] ?? 0)}`);
    far.setAttribute("aria-label", `${shorten(name)}: predicted ${shorten(show(decision))}. Zoom in`);
  }
  return { root, update };
}

function stateButton(name, state, id) {
  const share = el("span", { class: "share" });
  const tag = el("span", { class: "tag" });
  const [first, before, bar] = [el("i", { class: "first" }), el("i", { class: "before" }), el("i", { class: "after" })];
  const root = el("button", { type: "button", class: "state", id, onclick: (event) => toggleState(name, state, event.shiftKey) },
    el("span", { class: "state-name" }, term(state, 60)), tag, share, el("span", { class: "track" }, first, bar, before));

  function update(data, i) {
    const [after, earlier, pinned] = [data.after, data.before, data.first].map((one) => one?.marginals[name][i]);
    const decided = same(own(data.after.prediction, name), state);
    const isTrue = data.truth ? same(own(data.truth, name), state) : false;
    const given = own(data.given, name);
    const isKnown = given !== undefined && (Array.isArray(given) ? given.some((one) => same(one, state)) : same(given, state));
    share.textContent = pinned === undefined ? percent(after) : `${percent(pinned).replace(/\s%/, "")} → ${percent(after)}`;
    tag.textContent = isTrue ? (pinned === undefined ? "✓ true" : "✓") : "";
    bar.style.width = `${100 * after}%`;
    const moved = data.moved && pinned === undefined;
    before.hidden = !moved;
    before.style.insetInlineStart = `${100 * earlier}%`;
    first.hidden = pinned === undefined;
    first.style.width = `${100 * (pinned ?? 0)}%`;
    root.classList.toggle("decided", decided);
    root.classList.toggle("known", isKnown);
    root.classList.toggle("compared", pinned !== undefined);
    root.setAttribute("aria-pressed", String(isKnown));
    Object.assign(root.dataset, { variable: name, state: String(state), value: after, before: earlier, first: pinned ?? "" });
    const words = [percent(after), moved && `without known states ${percent(earlier)}`, pinned !== undefined && `in A ${percent(pinned)}`,
      decided && "predicted", isTrue && "true state", isKnown && "known"];
    root.setAttribute("aria-label", `${shorten(name)}: ${shorten(show(state))}, ${words.filter(Boolean).join(", ")}`);
    root.title = `${shorten(show(state), 300)}: ${words.filter(Boolean).join(", ")}`;
  }
  return { root, update };
}

/** Put children in an order; nothing is moved if they are in this order, so that the focus stays. */
function reorder(parent, children) {
  if (children.every((child, i) => parent.children[i] === child)) return;
  const focused = document.activeElement;
  parent.replaceChildren(...children);
  if (parent.contains(focused)) focused.focus({ preventScroll: true });
}

/** The arrow keys move from state to state. */
function moveInside(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !event.target.classList.contains("state")) return;
  const shown = [...event.currentTarget.querySelectorAll(".state:not([hidden])")];
  shown[shown.indexOf(event.target) + step]?.focus();
  event.preventDefault();
  event.stopPropagation();
}

function expand(name, open) {
  expanded[open ? "add" : "delete"](name);
  drawNodes();
}

/** All states of a class variable, to choose which are possible and to ask why. */
function openMenu(name) {
  const { states } = variable(name);
  const probabilities = shown.data.after.marginals[name];
  const given = own(page.state.given, name);
  const allowed = given === undefined ? [] : Array.isArray(given) ? given : [given];
  const boxes = states.map((state) => el("input", { type: "checkbox", checked: allowed.some((one) => same(one, state)) }));
  const rows = states.map((state, i) =>
    el("li", {}, el("label", {}, boxes[i], el("span", {}, term(state)), el("span", { class: "share" }, percent(probabilities[i]))),
      button("Why?", () => { dialog.close(); openWhy(name, state); }, { class: "why", "aria-label": `Why? ${shorten(show(state))}` })));
  const apply = () => { dialog.close(); allowStates(name, states.filter((_, i) => boxes[i].checked)); };
  const dialog = openDialog([term(name)],
    el("p", { class: "note" }, "Which states are possible? Tick one if it is known, several if it is one of them, none if nothing is known."),
    el("ul", { class: "choices" }, rows),
    el("div", { class: "buttons" },
      button("Apply", apply, { class: "main" }),
      button("Show only its neighbours", () => { dialog.close(); setState({ focus: name, steps: 1 }); }, { id: "only-neighbours" })));
}

/** A modal dialog: Escape and the button close it, and the focus returns. */
function openDialog(title, ...content) {
  const close = button("Close", () => dialog.close(), { class: "close" });
  const heading = el("h2", { id: "dialog-title" }, title);
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" }, el("div", { class: "dialog-head" }, heading, close), content);
  const opener = document.activeElement;
  dialog.addEventListener("close", () => {
    dialog.remove();
    const target = opener?.isConnected ? opener : find(opener?.id ?? "");
    if (document.activeElement === document.body) target?.focus({ preventScroll: true });
  });
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}
