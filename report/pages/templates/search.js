// Search over the page's data: each result links to its place on the timeline. The texts are
// built at the first search, because a long run has tens of thousands.

const FOUND = 100;

function startSearch(box, scene, acquires) {
  const asked = box.querySelector("#search"), list = box.querySelector(".found"), said = box.querySelector("[role=status]");
  const kinds = [...box.querySelectorAll("[type=checkbox]")];
  let items = null;
  box.hidden = false;
  asked.addEventListener("input", search);
  for (const kind of kinds) kind.addEventListener("change", search);

  function search() {
    const words = asked.value.toLowerCase().split(/\s+/).filter(Boolean);
    const wanted = new Set(kinds.filter(kind => kind.checked).map(kind => kind.value));
    list.replaceChildren();
    said.textContent = "";
    if (!words.length && wanted.size === kinds.length) return;
    items ??= itemsOf(scene, acquires);
    const found = items.filter(item => wanted.has(item.kind) && words.every(word => item.low.includes(word)));
    list.append(...found.slice(0, FOUND).map(entry));
    said.textContent = found.length > FOUND ? `${found.length.toLocaleString("en")} found, the first ${FOUND} shown`
      : found.length ? `${found.length} found` : "No match on this page.";
  }

  function entry({time, text, moment}) {
    const link = document.createElement("a"), item = document.createElement("li");
    link.href = "#timeline";
    link.dataset.moment = JSON.stringify(moment);
    link.textContent = clock(time);
    item.append(link, text);
    return item;
  }
}

function itemsOf(scene, acquires) {
  const items = [], node = number => scene.lanes[number]?.name ?? "";
  const add = (kind, time, until, holds, text) =>
    items.push({kind, time, text, low: `${kind} ${text} ${clock(time)}`.toLowerCase(), moment: {from: time, until, holds}});
  for (const sentence of document.querySelectorAll("ol.evidence li")) {
    const link = sentence.querySelector("[data-moment]");
    if (!link) continue;
    const moment = JSON.parse(link.dataset.moment);
    add("findings", moment.from, moment.until, moment.holds, sentence.firstChild.textContent.trim());
  }
  for (const hold of scene.holds)
    add("holds", hold.start, hold.shown, [hold.name], `${node(hold.lane)}, process ${hold.process}: hold ${hold.name} of ${hold.lock || "the lock"}`
      + `, token ${hold.token ?? "none"}, ${hold.until === null ? "never given up" : "ended by " + hold.ended_by}`);
  for (const write of scene.writes)
    add("writes", write.sent, write.time, write.hold === null ? [] : [String(write.hold)], `${node(write.lane)}: write ${JSON.stringify(write.value)} ${write.state}`
      + `, token ${write.token ?? "none"}, hold ${write.hold ?? "none"}${write.error ? ": " + write.error : ""}`);
  for (const acquire of acquires)
    add("acquires", acquire.time - acquire.latency, acquire.time, [], `acquire answered ${acquire.what} after ${duration(acquire.latency)}`);
  for (const fault of scene.faults)
    add("faults", fault.start, fault.shown, [], `${fault.family}: ${fault.words}${fault.proved ? "" : " (not proved)"}`);
  return items.sort((one, other) => one.time - other.time);
}
