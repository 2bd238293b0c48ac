// Files: the view as a page that needs no server, and the known states.

function download(name, type, text) {
  const address = URL.createObjectURL(new Blob([text], { type }));
  el("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

const fileName = (what) => `${(page.schema.title || "explorer").replace(/\.[^.]*$/, "").replace(/[^\w-]+/g, "-") || "explorer"}-${what}`;

async function exportPage() {
  say("Making the page …");
  try {
    const recorded = round.requests.filter((one, i, all) => all.findIndex((other) => other.key === one.key) === i);
    const text = await send("/export", { state: fragmentOf(page.state), recorded });
    download(fileName("view.html"), "text/html", text);
    say("The page is downloaded.");
  } catch (problem) {
    complain(problem.message);
  }
}

function exportStates() {
  download(fileName("known.json"), "application/json", JSON.stringify(page.state.given, null, 2) + "\n");
  say("The known states are downloaded.");
}

function loadStates() {
  const input = el("input", { type: "file", accept: ".json,application/json", id: "states-file", hidden: true, onchange: async () => {
    const file = input.files[0];
    input.remove();
    if (!file) return;
    let read;
    try {
      read = JSON.parse(await file.text());
    } catch {
      return complain(`${shorten(file.name)} is not JSON. It should be like {"vote": "Clinton", "region": ["N", "S"]}.`);
    }
    if (typeof read !== "object" || read === null || Array.isArray(read)) return complain(`${shorten(file.name)} should be like {"vote": "Clinton"}: class variables with their states.`);
    const { given, problems } = readGiven(read);
    if (problems.length) return complain(`${shorten(file.name)} was not loaded. ${problems.join(" ")}`);
    setState({ given });
  } });
  document.body.append(input);
  input.click();
}

function openFiles() {
  const act = (action) => () => { dialog.close(); action(); };
  const none = !Object.keys(page.state.given).length;
  const dialog = openDialog("Save and load",
    el("h3", {}, "This view"),
    el("p", { class: "note" }, start.live ? "One HTML file with what is on the page now. It needs no server; what is not on the page now cannot be asked there." : "This is already a saved page."),
    el("div", { class: "buttons" }, button("Save as HTML", act(exportPage), { class: "main", id: "save-page", disabled: !start.live })),
    el("h3", {}, "Known states"),
    el("p", { class: "note" }, none ? "Nothing is known now, so there is nothing to save." : "A JSON file of class variables and their states, which pmdc takes as ‘given’."),
    el("div", { class: "buttons" }, button("Save known states", act(exportStates), { id: "save-states", disabled: none }), button("Load known states", act(loadStates), { id: "load-states" })));
}
