// Interaction with the timeline and its charts: move, zoom, point, and jump to a piece of
// evidence. All of them share one view.

for (const frame of document.querySelectorAll(".timeline")) startTimeline(frame);

function startTimeline(frame) {
  const data = JSON.parse(document.getElementById(frame.dataset.source).textContent);
  const scene = sceneOf(data), charts = chartsOf(scene, data);
  const plots = [...document.querySelectorAll("canvas[data-chart]")];
  const detail = frame.querySelector(".detail"), whole = frame.querySelector(".whole");
  const tip = frame.querySelector(".tip"), label = frame.querySelector(".span");
  const SHORTEST = 200, WHOLE = 40;
  let view = {from: 0, until: scene.end, chosen: null};
  let palette = paletteOf(frame), width = 0, gutter = 0, queued = false;

  const timeAt = x => view.from + (x - gutter) / (width - gutter) * (view.until - view.from);

  function show(from, until, chosen = view.chosen) {
    const length = Math.min(Math.max(until - from, SHORTEST), scene.end);
    const start = Math.min(Math.max((from + until - length) / 2, 0), scene.end - length);
    view = {from: start, until: start + length, chosen};
    redraw();
  }

  function zoom(factor, centre = (view.from + view.until) / 2) {
    show(centre - (centre - view.from) * factor, centre + (view.until - centre) * factor);
  }

  function redraw() {
    if (queued) return;
    queued = true;
    requestAnimationFrame(() => {
      queued = false;
      draw();
    });
  }

  function draw() {
    width = frame.clientWidth;
    gutter = Math.min(96, Math.round(width * .2));
    drawDetail(sized(detail, scene.height), scene, view, width, gutter, palette);
    drawWhole(sized(whole, WHOLE), scene, view, width, WHOLE, gutter, palette);
    for (const plot of plots)
      drawChart(sized(plot, CHART), charts[plot.dataset.chart], scene, view, width, gutter, palette);
    label.textContent = `${clock(view.from)} to ${clock(view.until)}`;
  }

  function sized(canvas, height) {
    const ratio = window.devicePixelRatio || 1, ink = canvas.getContext("2d");
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.height = height + "px";
    }
    ink.setTransform(ratio, 0, 0, ratio, 0, 0);
    return ink;
  }

  // --- moving and zooming: one pointer drags, two pinch -----------------------------------

  for (const canvas of [detail, ...plots]) startMoving(canvas);

  function startMoving(canvas) {
    const down = new Map();
    canvas.addEventListener("pointerdown", event => {
      down.set(event.pointerId, event.offsetX);
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add("dragged");
    });
    canvas.addEventListener("pointermove", event => {
      const before = down.get(event.pointerId);
      if (before === undefined) return point(event, canvas);
      tip.hidden = true;
      const other = [...down].find(([id]) => id !== event.pointerId);
      if (other) {
        const factor = Math.abs(before - other[1]) / Math.max(8, Math.abs(event.offsetX - other[1]));
        zoom(factor, timeAt(other[1]));
      } else {
        const shift = timeAt(before) - timeAt(event.offsetX);
        const length = view.until - view.from;
        const from = Math.min(Math.max(view.from + shift, 0), scene.end - length);
        show(from, from + length);
      }
      down.set(event.pointerId, event.offsetX);
    });
    for (const name of ["pointerup", "pointercancel"])
      canvas.addEventListener(name, event => {
        down.delete(event.pointerId);
        if (!down.size) canvas.classList.remove("dragged");
      });
    canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
    canvas.addEventListener("dblclick", event => zoom(.25, timeAt(event.offsetX)));
    canvas.addEventListener("wheel", event => {
      // A plain wheel scrolls the page, as everywhere else.
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(Math.exp(Math.sign(event.deltaY) * .25), timeAt(event.offsetX));
    }, {passive: false});
  }

  detail.addEventListener("keydown", event => {
    const length = view.until - view.from;
    const acts = {
      "+": () => zoom(.5), "=": () => zoom(.5), "-": () => zoom(2), "Home": () => show(0, length),
      "End": () => show(scene.end - length, scene.end),
      "ArrowLeft": () => show(Math.max(0, view.from - length / 5), Math.max(length, view.until - length / 5)),
      "ArrowRight": () => show(Math.min(scene.end - length, view.from + length / 5), Math.min(scene.end, view.until + length / 5)),
    };
    if (!acts[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    acts[event.key]();
  });
  frame.querySelector(".tools").addEventListener("click", event => {
    const act = event.target.dataset.do;
    if (act === "in") zoom(.5);
    if (act === "out") zoom(2);
    if (act === "all") show(0, scene.end, null);
  });

  let anchor = null;
  const wholeTime = event =>
    Math.min(Math.max((event.offsetX - gutter) / (width - gutter), 0), 1) * scene.end;
  whole.addEventListener("pointerdown", event => {
    anchor = wholeTime(event);
    whole.setPointerCapture(event.pointerId);
  });
  whole.addEventListener("pointermove", event => {
    if (anchor === null) return;
    const time = wholeTime(event);
    if (Math.abs(time - anchor) > scene.end / 300) show(Math.min(anchor, time), Math.max(anchor, time));
  });
  whole.addEventListener("pointerup", event => {
    const time = wholeTime(event), half = (view.until - view.from) / 2;
    if (anchor !== null && Math.abs(time - anchor) <= scene.end / 300) show(time - half, time + half);
    anchor = null;
  });

  // --- pointing at --------------------------------------------------------------------------

  function point(event, canvas) {
    const chart = charts[canvas.dataset.chart];
    const text = chart
      ? aboutDot(chart, view, width, gutter, event.offsetX, event.offsetY)
      : describe(event.offsetX, event.offsetY);
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const below = event.clientY + 16, fits = below + tip.offsetHeight < innerHeight;
    tip.style.left = Math.max(0, Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 4)) + "px";
    tip.style.top = Math.max(0, fits ? below : event.clientY - tip.offsetHeight - 8) + "px";
  }

  function describe(x, y) {
    const number = scene.lanes.findIndex(lane => y >= lane.y && y < lane.y + lane.height + GAP);
    if (number < 0 || x < gutter) return "";
    const lane = scene.lanes[number], time = timeAt(x), slack = timeAt(x + 4) - time;
    const row = Math.max(0, Math.min(lane.depth - 1, Math.floor((y - lane.y - PAD + 3) / ROW)));
    const near = (from, until) => from - slack <= time && time <= until + slack;
    const faults = lane.bands.filter(({fault, row: at}) => near(fault.start, fault.shown)
      && (lane.kind === "client" || y >= lane.y + at * BAND_ROW && y < lane.y + (at + 1) * BAND_ROW));
    const lines = [];
    if (lane.kind === "client") {
      const write = nearest(scene.writes.filter(w => w.lane === number && w.row === row && near(w.time, w.time)), time);
      if (write) lines.push(aboutWrite(write), "");
      const holds = scene.holds.filter(h => h.lane === number && h.row === row && near(h.start, h.shown));
      const exact = holds.filter(h => h.start <= time && time <= h.shown);
      const hold = exact[0] ?? nearest(holds, time);
      if (hold) lines.push(aboutHold(hold), "");
      if (holds.length > 1) lines.push(`and ${holds.length - 1} more here: zoom in`, "");
      const block = scene.blocks.find(b => b.lane === number && b.start <= time && time < b.until);
      if (block && !hold) lines.push(aboutBlock(block), "");
    }
    if (lane.votes && y >= lane.votesY)
      for (const vote of scene.votes)
        if (vote.lane === number && near(vote.start, vote.shown))
          lines.push(`${lane.name} had granted ${aboutHold(scene.holds[vote.hold])}`, "");
    for (const {fault} of faults) lines.push(aboutFault(fault));
    for (const fault of lane.edges)
      if (near(fault.start, fault.shown)) lines.push(aboutFault(fault));
    return lines.join("\n").trim();
  }

  function nearest(items, time) {
    const distance = item => Math.abs((item.time ?? item.start) - time);
    return items.reduce((best, item) => best && distance(best) <= distance(item) ? best : item, null);
  }

  function aboutHold(hold) {
    const until = hold.until === null ? "never given up" : `ended by ${hold.ended_by} at ${clock(hold.until)}`;
    const deadline = hold.deadline === null ? "no lease that the client sees" : `deadline ${clock(hold.deadline)}`;
    return `hold ${hold.name} of ${hold.lock || "the lock"}, process ${hold.process}\n`
      + `token ${hold.token ?? "none"}\ngranted ${clock(hold.start)}\n${deadline}\n${until}`;
  }

  function aboutBlock(block) {
    const counts = ["accepted", "refused", "unknown"].filter(what => block[what])
      .map(what => `${block[what]} ${what}`).join(", ");
    const share = Math.round(100 * Math.min(1, block.held / (block.until - block.start)));
    return `${clock(block.start)} to ${clock(block.until)}, counted only:\n${block.holds} holds, ${share} % of the time\n`
      + `writes: ${counts || "none"}` + (block.overlaps ? `\n${block.overlaps} overlaps` : "");
  }

  function aboutWrite(write) {
    const why = write.error ? ` (${write.error})` : "";
    const took = write.time > write.sent ? `, sent ${clock(write.sent)}` : "";
    return `write ${JSON.stringify(write.value)} ${write.state} at ${clock(write.time)}${took}${why}\n`
      + `token ${write.token ?? "none"}, hold ${write.hold ?? "none"}`;
  }

  function aboutFault(fault) {
    const end = fault.until === null ? "never seen to end" : `to ${clock(fault.until)}`;
    return `${fault.words}\nfrom ${clock(fault.start)} ${end}${fault.proved ? "" : "\nnot proved"}`;
  }

  // --- evidence -----------------------------------------------------------------------------

  document.addEventListener("click", event => {
    const link = event.target.closest?.("[data-moment]");
    if (!link) return;
    event.preventDefault();
    const moment = JSON.parse(link.dataset.moment);
    const holds = moment.holds.map(name => scene.byName.get(name)).filter(Boolean);
    const from = Math.min(moment.from, ...holds.map(hold => hold.start));
    const until = Math.max(moment.until, ...holds.map(hold => hold.shown));
    // A hold far longer than the moment must not shrink the moment to nothing.
    const span = Math.max(moment.until - moment.from, scene.end / 2000, 20000) * 6;
    show(Math.max(from, moment.from - span) - span / 10, Math.min(until, moment.until + span) + span / 10, moment);
    document.getElementById("timeline").scrollIntoView({block: "start", behavior: "smooth"});
    detail.focus({preventScroll: true});
  });

  startSearch(document.querySelector(".search"), scene, rowsOf(data.acquires));

  // --- paper --------------------------------------------------------------------------------

  // A printed page is light and keeps its width: a canvas is drawn before the page is laid out again.
  for (const [name, printing] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(name, () => {
      document.documentElement.classList.toggle("paper", printing);
      palette = paletteOf(frame);
      draw();
    });

  new ResizeObserver(redraw).observe(frame);  // reports the first size too
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    palette = paletteOf(frame);
    redraw();
  });
}
