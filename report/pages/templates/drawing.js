"use strict";
// Draws the timeline: a scene (its objects and the positions of its lanes) into a canvas
// for a view (the span of time shown). Times are µs, positions CSS pixels. Nothing here
// keeps state or listens to events.
//
// Thousands of holds share a few hundred pixels, so each row remembers the last pixel that
// it drew and skips anything within it; overlaps and refusals are drawn last, and never too
// narrow to see.

const AXIS = 24, ROW = 24, BAR = 14, PAD = 6, BAND_ROW = 22, VOTE_ROW = 14, GAP = 3;
const COLOURS = ["ok", "info", "fail", "ok-line", "info-line", "fail-line", "clash", "paper", "panel",
  "line", "faint", "ink", "quiet", "band", "other", "c0", "c1", "c2", "c3", "c4", "c5", "c6", "c7"];

function rowsOf(table) {
  return table.rows.map(row => Object.fromEntries(table.columns.map((name, i) => [name, row[i]])));
}

/** Converts the tables of the page's data to objects, closes open ends and positions the lanes. */
function sceneOf(data) {
  const lanes = rowsOf(data.lanes), holds = rowsOf(data.holds), writes = rowsOf(data.writes);
  const faults = rowsOf(data.faults), overlaps = rowsOf(data.overlaps);
  const blocks = rowsOf(data.blocks), shades = rowsOf(data.shades);
  const votes = rowsOf(data.votes), twice = rowsOf(data.twice);
  const end = Math.max(data.end, 1);
  for (const item of [...holds, ...faults, ...overlaps, ...shades, ...votes, ...twice]) item.shown = item.until ?? Math.max(end, item.start);
  for (const hold of holds)
    hold.believed = hold.believed.map(([from, until]) => [from, until ?? hold.shown]);
  const byName = new Map(holds.map(hold => [hold.name, hold]));
  for (const write of writes) write.row = byName.get(String(write.hold))?.row ?? 0;
  for (const lane of lanes) { lane.bands = []; lane.edges = []; lane.ends = []; }
  for (const fault of faults) {
    for (const number of fault.lanes) stack(lanes[number], fault);
    for (const number of fault.edges) lanes[number].edges.push(fault);
  }
  for (const vote of votes) lanes[vote.lane].votes = true;
  let y = AXIS;
  for (const lane of lanes) {
    const rows = Math.max(lane.votes ? 0 : 1, ...lane.bands.map(band => band.row + 1));
    lane.y = y;
    lane.votesY = y + rows * BAND_ROW;
    lane.height = lane.kind === "client" ? lane.depth * ROW + PAD : Math.max(BAND_ROW, rows * BAND_ROW + (lane.votes ? VOTE_ROW : 0));
    y += lane.height + GAP;
  }
  const troubled = data.shade.map(([from, until]) => [from, until ?? end]);
  return {lanes, holds, writes, faults, overlaps, blocks, shades, votes, twice, byName, end, height: y, troubled};
}

/** Adds a fault to a lane's bands, in the first row where it covers no other; they come in order. */
function stack(lane, fault) {
  let row = lane.ends.findIndex(end => end <= fault.start);
  if (row < 0) row = lane.ends.length;
  lane.ends[row] = fault.shown;
  lane.bands.push({fault, row});
}

/** Returns the page's current colours (light or dark), and hatchings made of them. */
function paletteOf(element) {
  const style = getComputedStyle(element), palette = {font: style.fontFamily};
  for (const name of COLOURS) palette[name] = style.getPropertyValue("--" + name).trim();
  const families = new Map();
  palette.family = name => {
    if (!families.has(name))
      families.set(name, style.getPropertyValue("--fault-" + name).trim() || palette.other);
    return families.get(name);
  };
  palette.hatch = name => {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 6;
    const ink = tile.getContext("2d");
    ink.strokeStyle = palette[name];
    ink.lineWidth = 1.6;
    for (const shift of [-6, 0, 6]) {
      ink.beginPath(); ink.moveTo(shift - 1, 7); ink.lineTo(shift + 7, -1); ink.stroke();
    }
    return tile;
  };
  return palette;
}

/** Returns a family's colour; run.html defines --fault-NAME for each known family. */
function familyColour(palette, fault) {
  return palette.family(fault.family);
}

/** Draws the scene's view into a canvas `width` wide, whose first `gutter` pixels name the lanes. */
function drawDetail(ink, scene, view, width, gutter, palette) {
  const scale = (width - gutter) / (view.until - view.from);
  const at = time => gutter + (time - view.from) * scale;
  const visible = (from, until) => until >= view.from && from <= view.until;
  const rowY = (lane, row) => lane.y + PAD + row * ROW;
  ink.clearRect(0, 0, width, scene.height);
  ink.save();
  ink.beginPath(); ink.rect(gutter, 0, width - gutter, scene.height); ink.clip();
  drawBands();
  drawVotes();
  drawBlocks();
  drawHolds();
  drawOverlaps();
  drawWrites();
  drawChosen();
  ink.restore();
  drawAxis();
  drawNames();

  function drawBands() {
    drawTroubled(ink, scene, view, at, AXIS, scene.height - AXIS, palette);
    drawShades();
    ink.font = "11px " + palette.font;
    ink.textBaseline = "middle";
    for (const lane of scene.lanes) {
      for (const {fault, row} of lane.bands)
        if (visible(fault.start, fault.shown)) drawBand(lane, fault, row);
      for (const fault of lane.edges)
        if (visible(fault.start, fault.shown)) drawEdge(lane, fault);
    }
  }

  /** Draws a server's grants: a thin bar for each hold, red where it had granted two. */
  function drawVotes() {
    const drawn = new Map();
    for (const [items, colour] of [[scene.votes, "ok"], [scene.twice, "clash"]])
      for (const item of items) {
        if (!visible(item.start, item.shown)) continue;
        const pixel = Math.round(at(item.shown)), left = at(item.start);
        if (colour === "ok" && (item.shown - item.start) * scale < 1 && drawn.get(item.lane) === pixel) continue;
        drawn.set(item.lane, pixel);
        ink.fillStyle = palette[colour];
        ink.fillRect(left, scene.lanes[item.lane].votesY + 2, Math.max(colour === "ok" ? 1 : 3, at(item.shown) - left), 7);
      }
  }

  /** Shades the times when a node had any fault, if not all of them are drawn. */
  function drawShades() {
    ink.fillStyle = palette.other;
    for (const shade of scene.shades) {
      if (!visible(shade.start, shade.shown)) continue;
      const lane = scene.lanes[shade.lane], left = at(shade.start);
      ink.globalAlpha = lane.kind === "server" ? .22 : .1;
      ink.fillRect(left, lane.y, Math.max(1, at(shade.shown) - left), lane.height);
    }
    ink.globalAlpha = 1;
  }

  /** Marks the other end of a link that a fault cut by a thin line under the lane. */
  function drawEdge(lane, fault) {
    const left = Math.max(at(fault.start), gutter - 2);
    ink.fillStyle = familyColour(palette, fault);
    ink.fillRect(left, lane.y + lane.height - 3, Math.max(2, Math.min(at(fault.shown), width + 2) - left), 3);
  }

  function drawBand(lane, fault, row) {
    const server = lane.kind === "server";
    const y = server ? lane.y + row * BAND_ROW + 1 : lane.y;
    const height = server ? BAND_ROW - 2 : lane.height;
    const left = Math.max(at(fault.start), gutter - 2);
    const length = Math.max(2, Math.min(at(fault.shown), width + 2) - left);
    ink.globalAlpha = server ? .45 : .28;
    ink.fillStyle = ink.strokeStyle = familyColour(palette, fault);
    if (fault.proved) ink.fillRect(left, y, length, height);
    ink.globalAlpha = .9;
    if (!fault.proved) {
      ink.setLineDash([3, 3]); ink.strokeRect(left + .5, y + .5, length - 1, height - 1); ink.setLineDash([]);
    }
    if (server) {
      const doubt = fault.proved ? "" : " (not proved)";
      const label = [fault.words + doubt, fault.family + doubt, fault.family]
        .find(text => ink.measureText(text).width < length - 10);
      ink.globalAlpha = 1;
      ink.fillStyle = palette.ink;
      ink.fillText(label ?? "", left + 5, y + height / 2 + .5);
    }
    ink.globalAlpha = 1;
  }

  /** Fills a bar of a minimal width, or leaves out part of its edge. */
  function bar(lane, row, from, until, least, edge = 0) {
    const left = Math.max(at(from), gutter - 4), right = Math.min(at(until), width + 4);
    const length = Math.max(least, right - left);
    const x = length > right - left ? left - (least > 1 ? (length - right + left) / 2 : 0) : left;
    ink.fillRect(x + edge, rowY(lane, row) + edge, length - 2 * edge, BAR - 2 * edge);
  }

  /** Draws a block of counts: pale, filled to the share of the time that a lock was held. */
  function drawBlocks() {
    for (const block of scene.blocks) {
      if (!visible(block.start, block.until)) continue;
      const left = at(block.start), length = Math.max(1, at(block.until) - left);
      const y = rowY(scene.lanes[block.lane], 0), share = Math.min(1, block.held / (block.until - block.start));
      ink.fillStyle = palette.ok;
      ink.globalAlpha = .25;
      ink.fillRect(left, y, length, BAR);
      ink.globalAlpha = .7;
      ink.fillRect(left, y + BAR * (1 - share), length, BAR * share);
      ink.globalAlpha = 1;
      for (const [what, colour] of [["unknown", "info"], ["refused", "fail-line"]])
        if (block[what]) {
          ink.fillStyle = palette[colour];
          ink.fillRect(left + length / 2 - 1, y + BAR - 3, 2, 6);
        }
      if (block.overlaps) {
        ink.fillStyle = palette.clash;
        ink.fillRect(left, y - 3, Math.max(2, length), 3);
      }
    }
  }

  function drawHolds() {
    const hatch = ink.createPattern(palette.hatch("ok"), "repeat"), drawn = new Map();
    for (const hold of scene.holds) {
      if (!visible(hold.start, hold.shown)) continue;
      const lane = scene.lanes[hold.lane], pixel = Math.round(at(hold.shown));
      const row = hold.lane * 64 + hold.row;
      if ((hold.shown - hold.start) * scale < 1 && drawn.get(row) === pixel) continue;
      drawn.set(row, pixel);
      ink.fillStyle = hatch;
      let reached = hold.start;
      for (const [from, until] of hold.believed) {
        if (from > reached) bar(lane, hold.row, reached, from, 0);
        reached = until;
      }
      if (hold.shown > reached) bar(lane, hold.row, reached, hold.shown, 0);
      ink.fillStyle = palette.ok;
      for (const [from, until] of hold.believed) bar(lane, hold.row, from, until, 1);
      if ((hold.shown - hold.start) * scale > 8) {
        ink.strokeStyle = palette["ok-line"];
        ink.lineWidth = 1;
        const left = at(hold.start), right = at(hold.shown);
        ink.strokeRect(left + .5, rowY(lane, hold.row) + .5, right - left - 1, BAR - 1);
      }
    }
  }

  function drawOverlaps() {
    const hatch = ink.createPattern(palette.hatch("clash"), "repeat");
    for (const overlap of scene.overlaps) {
      if (!visible(overlap.start, overlap.shown)) continue;
      for (const number of [overlap.first, overlap.second]) {
        const hold = scene.holds[number];
        // A narrow bar has no room for a hatching: draw a frame.
        const narrow = (overlap.shown - overlap.start) * scale < 8;
        const styles = overlap.believed ? [palette.clash] : narrow ? [palette.clash, palette.paper] : [palette.paper, hatch];
        for (const [inner, style] of styles.entries()) {
          ink.fillStyle = style;
          bar(scene.lanes[hold.lane], hold.row, overlap.start, overlap.shown, 5, narrow ? 1.5 * inner : 0);
        }
      }
    }
  }

  function drawWrites() {
    const drawn = new Set();
    for (const pass of ["accepted", "unknown", "refused"])
      for (const write of scene.writes) {
        if (write.state !== pass || !visible(write.time, write.time)) continue;
        const x = Math.round(at(write.time)), key = pass + write.lane + "/" + write.row + "/" + x;
        if (drawn.has(key)) continue;
        drawn.add(key);
        const y = rowY(scene.lanes[write.lane], write.row) + BAR - 3;
        if (pass === "refused") {
          ink.fillStyle = palette.fail; ink.strokeStyle = palette["fail-line"]; ink.lineWidth = 1.2;
          ink.beginPath(); ink.arc(x, y + 4, 3.4, 0, 7); ink.fill(); ink.stroke();
        } else {
          ink.fillStyle = palette[pass === "accepted" ? "ok-line" : "info"];
          ink.fillRect(x - 1, y, 2, 8);
        }
      }
  }

  function drawChosen() {
    if (!view.chosen) return;
    const x = at(view.chosen.from);
    ink.strokeStyle = palette.ink;
    ink.lineWidth = 1;
    ink.setLineDash([4, 3]);
    ink.beginPath(); ink.moveTo(x, AXIS); ink.lineTo(x, scene.height); ink.stroke();
    ink.setLineDash([]);
    ink.lineWidth = 2;
    for (const name of view.chosen.holds) {
      const hold = scene.byName.get(name);
      if (!hold) continue;
      const left = at(hold.start) - 2, lane = scene.lanes[hold.lane];
      ink.strokeRect(left, rowY(lane, hold.row) - 2, Math.max(4, at(hold.shown) - left + 2), BAR + 4);
    }
  }

  function drawAxis() {
    ink.font = "11px " + palette.font;
    ink.textBaseline = "middle";
    ink.textAlign = "center";
    for (const [time, text] of timeTicks(view, width - gutter)) {
      const x = at(time);
      ink.strokeStyle = palette.line; ink.lineWidth = 1;
      ink.beginPath(); ink.moveTo(x, AXIS - 5); ink.lineTo(x, AXIS); ink.stroke();
      ink.fillStyle = palette.quiet;
      if (x < width - 16) ink.fillText(text, x, 10);
    }
    ink.textAlign = "left";
  }

  function drawNames() {
    ink.font = "12px " + palette.font;
    ink.textBaseline = "middle";
    for (const lane of scene.lanes) {
      ink.fillStyle = lane.kind === "client" ? palette.ink : palette.quiet;
      ink.fillText(lane.name, 2, lane.y + lane.height / 2, gutter - 8);
      ink.strokeStyle = palette.line; ink.lineWidth = 1;
      const y = Math.round(lane.y + lane.height + GAP / 2) + .5;
      ink.beginPath(); ink.moveTo(0, y); ink.lineTo(width, y); ink.stroke();
    }
  }
}

/** Draws the whole run as a strip, with the view marked in it. */
function drawWhole(ink, scene, view, width, height, gutter, palette) {
  const scale = (width - gutter) / scene.end, at = time => gutter + time * scale;
  const mark = (colour, from, until, y, tall, least) => {
    ink.fillStyle = colour;
    ink.fillRect(at(from), y, Math.max(least, (until - from) * scale), tall);
  };
  ink.clearRect(0, 0, width, height);
  for (const fault of scene.faults) {
    ink.globalAlpha = .18;
    mark(familyColour(palette, fault), fault.start, fault.shown, 0, height, 1);
  }
  ink.globalAlpha = 1;
  const clients = scene.lanes.filter(lane => lane.kind === "client").length || 1;
  const tall = Math.max(1, (height - 8) / clients), drawn = new Map();
  for (const hold of scene.holds) {
    const pixel = Math.round(at(hold.shown));
    if (drawn.get(hold.lane) === pixel) continue;
    drawn.set(hold.lane, pixel);
    mark(palette.ok, hold.start, hold.shown, 4 + hold.lane * tall, Math.max(1, tall - 1), 1);
  }
  for (const block of scene.blocks) {
    mark(palette.ok, block.start, block.until, 4 + block.lane * tall, Math.max(1, tall - 1), 1);
    if (block.overlaps) mark(palette.clash, block.start, block.until, height - 4, 4, 2);
  }
  for (const overlap of scene.overlaps)
    mark(palette.clash, overlap.start, overlap.shown, overlap.believed ? 0 : height - 4, 4, 3);
  ink.fillStyle = palette.quiet;
  ink.font = "11px " + palette.font;
  ink.textBaseline = "middle";
  ink.fillText("whole run", 6, height / 2, gutter - 10);
  ink.strokeStyle = palette.ink;
  ink.lineWidth = 1.5;
  ink.strokeRect(at(view.from) + .75, .75, Math.max(3, (view.until - view.from) * scale - 1.5), height - 1.5);
}

/** Shades the times when any fault was active. */
function drawTroubled(ink, scene, view, at, y, height, palette) {
  ink.fillStyle = palette.band;
  for (const [from, until] of scene.troubled)
    if (until >= view.from && from <= view.until)
      ink.fillRect(at(from), y, Math.max(1, at(until) - at(from)), height);
}

function niceStep(least) {
  const power = 10 ** Math.floor(Math.log10(Math.max(least, 1)));
  return [1, 2, 5, 10].map(factor => factor * power).find(step => step >= least);
}

/** Returns the labelled times of an axis `length` pixels long. */
function timeTicks(view, length) {
  const step = niceStep((view.until - view.from) / Math.max(2, length / 90)), ticks = [];
  for (let time = Math.ceil(view.from / step) * step; time <= view.until; time += step)
    ticks.push([time, clock(time, step)]);
  return ticks;
}

/** Formats a time in µs; `step` sets how many decimals it needs. */
function clock(time, step = 1000) {
  return (time / 1e6).toFixed(Math.max(0, 6 - Math.floor(Math.log10(step)))) + " s";
}
