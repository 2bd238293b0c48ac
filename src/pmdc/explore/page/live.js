// A saved page in a notebook shows the live page in its place, where its server can be reached.

const READY = "pmdc explorer";

function showLive(address) {
  const live = el("iframe", { src: address, class: "live", title: "Explorer", hidden: "" });
  window.addEventListener("message", (event) => {
    if (event.source !== live.contentWindow || event.data !== READY) return;
    for (const other of document.body.children) other.hidden = true;
    live.hidden = false;
  });
  document.body.append(live);
}

/** Tell the page around this one that it is there. */
function tellReady() {
  if (start.live && framed) window.parent.postMessage(READY, "*");
}
