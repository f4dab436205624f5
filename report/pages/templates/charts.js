// The charts: dots and lines over time, drawn into a canvas for the timeline's view. A chart is
// {dots, lines, low, high, ticks, label}: dots carry the value that is drawn and a sentence for the
// tooltip. The scale is that of the whole run, so that zooming does not move it.
//
// Of dots on the same pixel, one of each kind is drawn, so that a hundred thousand stay fast.

const CHART = 240, CHART_TOP = 8, CHART_FOOT = 24;
const DOTS = {
  granted: {fill: "ok", size: 4}, accepted: {fill: "ok-line", size: 1.8},
  unknown: {fill: "info", size: 2.6}, refused: {fill: "fail", line: "fail-line", size: 3.2},
  ok: {fill: "ok"}, fail: {fill: "fail", line: "fail-line"}, info: {fill: "info"},
};
const DASHES = {p50: [], p95: [6, 3], p99: [2, 3]};
for (let number = 0; number < 8; number++) DOTS["c" + number] = {fill: "c" + number, size: 3};
const DEAREST_US = 1;

function chartsOf(scene, data) {
  return {tokens: tokensChart(scene, rowsOf(data.tokens)), latency: latencyChart(rowsOf(data.acquires), rowsOf(data.quantiles)),
    rates: ratesChart(rowsOf(data.rates)), clocks: clocksChart(data.offsets)};
}

/** Tokens of grants and of writes. */
function tokensChart(scene, others) {
  const dots = [];
  for (const {token, start, name} of scene.holds)
    if (token !== null)
      dots.push({time: start, value: Number(token), what: "granted", text: () => `token ${token}, granted with hold ${name}`});
  for (const {token, time, state} of scene.writes)
    if (token !== null)
      dots.push({time, value: Number(token), what: state, text: () => `token ${token}, write ${state === "unknown" ? "of unknown outcome" : state}`});
  for (const {time, token, state} of others)
    dots.push({time, value: Number(token), what: state, text: () => `token ${token}, ${state === "granted" ? state : "write " + state}; and others at this point`});
  let low = Infinity, high = -Infinity;
  for (const {value} of dots) { low = Math.min(low, value); high = Math.max(high, value); }
  const pad = Math.max((high - low) * .05, 1);
  return {dots, lines: [], low: low - pad, high: high + pad, ticks: wholeTicks, label: wholeNumber};
}

/** The latency of acquires on a logarithmic scale, and its quantiles. */
function latencyChart(acquires, quantiles) {
  const logs = us => Math.log10(Math.max(us, DEAREST_US));
  const dots = acquires.map(({time, latency, what}) =>
    ({time, value: logs(latency), what, text: () => `acquire answered ${what} after ${duration(latency)}`}));
  let low = Infinity, high = -Infinity;
  for (const {value} of dots) { low = Math.min(low, value); high = Math.max(high, value); }
  low = Math.floor(low);
  const lines = Object.keys(DASHES).map(name =>
    ({dash: DASHES[name], points: quantiles.map(row => ({time: row.time, value: logs(row[name])}))}));
  return {dots, lines, low, high: Math.max(Math.ceil(high), low + 1), ticks: decades, label: log => duration(10 ** log)};
}

/** Ops and holds per second, in steps: one figure for each span of the run. */
function ratesChart(spans) {
  const dots = [], steps = {ops: [], holds: []};
  let high = 0;
  for (const span of spans) {
    const text = () => `${round(span.ops)} ops and ${round(span.holds)} holds a second`;
    for (const name of ["ops", "holds"]) {
      steps[name].push({time: span.start, value: span[name]}, {time: span.until, value: span[name]});
      dots.push({time: (span.start + span.until) / 2, value: span[name], what: "none", text});
    }
    high = Math.max(high, span.ops, span.holds);
  }
  const lines = [{dash: [], colour: "c1", points: steps.ops}, {dash: [5, 3], colour: "c0", points: steps.holds}];
  return {dots, lines, low: 0, high: high * 1.05 || 1, ticks: evenTicks, label: round};
}

/** Clock offsets: readings with their bounds, and the course between. */
function clocksChart(data) {
  const clocks = rowsOf(data.clocks);
  let low = 0, high = 0;
  const lines = clocks.map(({points}, number) => ({
    dash: [], colour: "c" + number, points: points.map(([time, value]) => ({time, value})),
  }));
  const dots = rowsOf(data.looks).map(look => ({
    time: look.time, value: (look.low + look.high) / 2, low: look.low, high: look.high, what: "c" + look.clock,
    text: () => `${clocks[look.clock].node}, ${clocks[look.clock].clock} clock: off by ${signed(look.low)} to ${signed(look.high)}`,
  }));
  for (const {points} of lines) for (const {value} of points) { low = Math.min(low, value); high = Math.max(high, value); }
  for (const dot of dots) { low = Math.min(low, dot.low); high = Math.max(high, dot.high); }
  const pad = Math.max((high - low) * .06, .001);
  return {dots, lines, low: low - pad, high: high + pad, ticks: evenTicks, label: value => round(value) + " s"};
}

/** Draws a chart into a canvas `width` wide, whose first `gutter` pixels have the labels. */
function drawChart(ink, chart, scene, view, width, gutter, palette) {
  const place = placeIn(chart, view, width, gutter);
  const bottom = CHART - CHART_FOOT;
  ink.clearRect(0, 0, width, CHART);
  drawScale();
  ink.save();
  ink.beginPath(); ink.rect(gutter, 0, width - gutter, bottom); ink.clip();
  drawTroubled(ink, scene, view, place.x, CHART_TOP, bottom - CHART_TOP, palette);
  drawDots();
  drawLines();
  ink.restore();

  function drawScale() {
    ink.font = "11px " + palette.font;
    ink.textBaseline = "middle";
    ink.lineWidth = 1;
    ink.strokeStyle = palette.line;
    ink.fillStyle = palette.quiet;
    ink.textAlign = "right";
    for (const value of chart.ticks(chart.low, chart.high)) {
      const y = Math.round(place.y(value)) + .5;
      ink.beginPath(); ink.moveTo(gutter, y); ink.lineTo(width, y); ink.stroke();
      ink.fillText(chart.label(value), gutter - 8, y, gutter - 10);
    }
    ink.textAlign = "center";
    for (const [time, text] of timeTicks(view, width - gutter)) {
      const x = place.x(time);
      ink.beginPath(); ink.moveTo(x, bottom); ink.lineTo(x, bottom + 5); ink.stroke();
      if (x < width - 16) ink.fillText(text, x, bottom + 14);
    }
    ink.textAlign = "left";
  }

  function drawDots() {
    const usual = chart.dots.length > 200 ? 2 : 3.2, drawn = new Set();
    for (const [number, what] of Object.keys(DOTS).entries()) {
      const {fill, line, size = usual} = DOTS[what];
      ink.fillStyle = palette[fill];
      ink.strokeStyle = palette[line] ?? palette[fill];
      for (const dot of chart.dots) {
        if (dot.what !== what || dot.time < view.from || dot.time > view.until) continue;
        const x = place.x(dot.time), y = place.y(dot.value);
        const key = (number * 1024 + Math.round(y)) * 8192 + Math.round(x);
        if (drawn.has(key)) continue;
        drawn.add(key);
        if (dot.low !== undefined) {
          ink.lineWidth = 1.4;
          ink.beginPath(); ink.moveTo(x, place.y(dot.low)); ink.lineTo(x, place.y(dot.high)); ink.stroke();
        }
        ink.beginPath(); ink.arc(x, y, size, 0, 7); ink.fill();
        if (line) ink.stroke();
      }
    }
  }

  function drawLines() {
    ink.lineWidth = 1.6;
    for (const {dash, points, colour = "ink"} of chart.lines) {
      ink.strokeStyle = palette[colour];
      ink.setLineDash(dash);
      ink.beginPath();
      let pen = false;  // up where the way breaks off
      for (const {time, value} of points) {
        if (value !== null) ink[pen ? "lineTo" : "moveTo"](place.x(time), place.y(value));
        pen = value !== null;
      }
      ink.stroke();
    }
    ink.setLineDash([]);
  }
}

/** Returns the tooltip of a chart: the text of the dot nearest to the pointer. */
function aboutDot(chart, view, width, gutter, x, y) {
  const place = placeIn(chart, view, width, gutter), reach = 10;
  let best = null, least = reach * reach;
  for (const dot of chart.dots) {
    const off = (place.x(dot.time) - x) ** 2 + (place.y(dot.value) - y) ** 2;
    if (off <= least) { best = dot; least = off; }
  }
  return best ? `${best.text()}\nat ${clock(best.time)}` : "";
}

/** Returns the scales of times and values. */
function placeIn(chart, view, width, gutter) {
  const scale = (width - gutter) / (view.until - view.from);
  const tall = CHART - CHART_FOOT - CHART_TOP;
  return {
    x: time => gutter + (time - view.from) * scale,
    y: value => CHART_TOP + tall * (1 - (value - chart.low) / (chart.high - chart.low)),
  };
}

function wholeTicks(low, high) {
  const step = Math.max(1, niceStep((high - low) / 5)), ticks = [];
  for (let value = Math.ceil(low / step) * step; value <= high; value += step) ticks.push(value || 0);
  return ticks;
}

/** Returns round values between two others. */
function evenTicks(low, high) {
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 5, 10].map(factor => factor * power).find(one => one >= (high - low) / 5), ticks = [];
  for (let number = Math.ceil(low / step); number * step <= high; number++) ticks.push(number * step);
  return ticks;
}

function round(value) {
  return (+value.toPrecision(3)).toLocaleString("en", {maximumFractionDigits: 6});
}

function signed(s) {
  return (s < 0 ? "−" : "+") + duration(Math.abs(s) * 1e6);
}

/** Returns powers of ten, with 2 and 5 between them if there are few. */
function decades(low, high) {
  const between = high - low > 2 ? [1] : [1, 2, 5], ticks = [];
  for (let power = low; power <= high; power++)
    for (const factor of between) {
      const value = power + Math.log10(factor);
      if (value <= high + 1e-9) ticks.push(value);
    }
  return ticks;
}

function wholeNumber(value) {
  return Math.abs(value) < 1e13 ? value.toLocaleString("en") : value.toExponential(6);
}

/** Formats a duration in µs. */
function duration(us) {
  if (us >= 1e6) return +(us / 1e6).toPrecision(3) + " s";
  return us >= 1000 ? +(us / 1000).toPrecision(3) + " ms" : +us.toPrecision(3) + " µs";
}
