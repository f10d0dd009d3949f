"use strict";
// The latent explorer. In order: data, distributions, decoder, state, plane, panel, curve, path, input, start.
(async () => {
  const $ = (id) => document.getElementById(id);
  const root = document.documentElement;

  $("theme").addEventListener("click", () => {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = root.dataset.theme || (dark ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    root.dispatchEvent(new Event("theme"));
  });

  // ---------------------------------------------------------------- data

  const header = JSON.parse($("header").textContent);

  async function unpack() {
    const text = atob($("block").textContent);
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    $("block").remove();
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).arrayBuffer();
  }

  let buffer;
  try {
    buffer = await unpack();
  } catch (error) {
    $("broken").textContent = `The explorer could not be started: ${error.message}. It needs a browser of 2023 or later.`;
    $("broken").hidden = false;
    return;
  }
  const TYPES = { f8: Float64Array, f4: Float32Array, i4: Int32Array, u2: Uint16Array };
  const array = (name) => {
    const about = header.arrays[name];
    if (!about) return null;
    return new TYPES[about.type](buffer, about.at, about.shape.reduce((a, b) => a * b, 1));
  };

  const { decoders, rows, columns, image, ordered } = header; // the family of each column, by its name here
  const shares = decoders[0] === "multinomial"; // the columns of a row are shares of its total
  const known = (j) => decoders[j] !== null; // means of a family that the page does not know are interpolated
  const intervals = decoders.some((decoder) => decoder !== null);
  const D = header.dimensions, N = rows.length, J = columns.length;
  const X = array("X"), covariance = array("covariance"), observed = array("observed");
  const W = array("W"), beta = array("beta"), step = array("step"), bias = array("bias");
  const lowest = array("lowest"), highest = array("highest"); // the range of each f_j
  const sigma2 = array("sigma2"), nu = array("nu"), r = array("r"), odds = array("odds"), gaps = array("gaps");
  const categories = array("categories"); // the first and the last of ordered ones, of each column
  const nGaps = gaps ? header.arrays.gaps.shape[1] : 0;
  const table = array("table"), tableLow = array("table_low"), tableStep = array("table_step");
  const offset = array("offset"), totals = array("totals");
  const trials = array("trials"), rowTrials = array("row_trials");
  const low = array("low"), high = array("high"), centre = array("centre"), spread = array("spread");
  const [S, M, K] = header.arrays.beta.shape; // members, cosines and sines, predictors
  const H = M / 2, oneW = header.arrays.W.shape[0] === 1;
  const colours = header.colours.map((about, i) => ({ ...about, values: array(`colour${i}`) }));
  const ambiguous = new Set(header.ambiguous);
  const nameOf = (n) => (/^[\d.]+$/.test(rows[n]) ? `row ${rows[n]}` : rows[n]);
  const cell = (n, j) => {
    const y = observed[n * J + j];
    return observed instanceof Uint16Array && y === header.missing ? NaN : y;
  };

  // ---------------------------------------------------------------- distributions

  function logGamma(x) {
    let shift = 0;
    while (x < 12) shift -= Math.log(x++);
    const q = 1 / (x * x);
    const series = (1 / 12 - q * (1 / 360 - q * (1 / 1260 - q * (1 / 1680 - q / 1188)))) / x;
    return shift + (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + series;
  }

  // Q(a, x): the probability that a gamma variate of shape a exceeds x.
  function gammaTail(a, x) {
    if (x <= 0) return 1;
    if (a > 2e4) { // Wilson and Hilferty: the cube root is nearly normal
      const s = 1 / (9 * a);
      return 1 - normalCdf((Math.cbrt(x / a) - 1 + s) / Math.sqrt(s));
    }
    const front = Math.exp(a * Math.log(x) - x - logGamma(a));
    if (x < a + 1) {
      let term = 1 / a, sum = term;
      for (let n = 1; n < 2000 && term > sum * 1e-15; n++) sum += term *= x / (a + n);
      return 1 - front * sum;
    }
    let b = x + 1 - a, c = 1e300, d = 1 / b, h = d;
    for (let n = 1; n < 2000; n++) {
      const an = -n * (n - a);
      b += 2;
      d = 1 / nonzero(an * d + b);
      c = nonzero(b + an / c);
      h *= d * c;
      if (Math.abs(d * c - 1) < 1e-14) break;
    }
    return front * h;
  }

  function normalCdf(z) {
    if (Math.abs(z) > 38) return z > 0 ? 1 : 0;
    const half = 0.5 * gammaTail(0.5, (z * z) / 2);
    return z > 0 ? 1 - half : half;
  }

  // I_x(a, b): the distribution function of a beta variate.
  function betaCdf(x, a, b) {
    if (x <= 0) return 0;
    if (x >= 1) return 1;
    if (x > (a + 1) / (a + b + 2)) return 1 - betaCdf(1 - x, b, a);
    const front = Math.exp(
      a * Math.log(x) + b * Math.log1p(-x) + logGamma(a + b) - logGamma(a) - logGamma(b)) / a;
    let c = 1, d = 1 / nonzero(1 - ((a + b) * x) / (a + 1)), h = d;
    for (let n = 1; n < 5000; n++) {
      for (const t of [
        (n * (b - n) * x) / ((a + 2 * n - 1) * (a + 2 * n)),
        (-(a + n) * (a + b + n) * x) / ((a + 2 * n) * (a + 2 * n + 1)),
      ]) {
        d = 1 / nonzero(1 + t * d);
        c = nonzero(1 + t / c);
        h *= d * c;
      }
      if (Math.abs(d * c - 1) < 1e-14) break;
    }
    return front * h;
  }

  const nonzero = (v) => (Math.abs(v) < 1e-300 ? 1e-300 : v);
  const sigmoid = (f) => (f >= 0 ? 1 / (1 + Math.exp(-f)) : Math.exp(f) / (1 + Math.exp(f)));

  // ---------------------------------------------------------------- decoder

  // f_j = b_j + phi(x)'beta_j for each member, with phi(x) = [cos(Wx) sin(Wx)] / sqrt(H), held to its range; then the
  // median of E[y_j].
  const phi = new Float64Array(M), f = new Float64Array(K);
  const means = new Float64Array(S * J), expected = new Float64Array(J), ofMembers = new Float64Array(S);
  const predictors = new Float64Array(S * J);

  function features(x, s) {
    for (let h = 0; h < H; h++) {
      let angle = 0;
      for (let d = 0; d < D; d++) angle += W[(s * H + h) * D + d] * x[d];
      phi[h] = Math.cos(angle) / Math.sqrt(H);
      phi[H + h] = Math.sin(angle) / Math.sqrt(H);
    }
  }

  // A row, or -1, gives offset, trials and total.
  const offsetOf = (row) => (offset && row >= 0 ? offset[row] : 0);
  const totalOf = (row) => (row >= 0 ? totals[row] : header.total);
  const trialsOf = (row, j) => (rowTrials && row >= 0 ? rowTrials[row * J + j] : trials ? trials[j] : 1);

  function decode(x, row) {
    for (let s = 0; s < S; s++) {
      if (s === 0 || !oneW) features(x, s);
      f.fill(0);
      for (let m = 0; m < M; m++) {
        const p = phi[m], start = (s * M + m) * K;
        for (let k = 0; k < K; k++) f[k] += p * beta[start + k];
      }
      const shift = offsetOf(row);
      for (let k = 0; k < K; k++) {
        const at = s * K + k;
        f[k] = Math.min(Math.max(f[k] * step[k] + bias[at], lowest[at]), highest[at]) + shift;
      }
      respond(s, row);
    }
    for (let j = 0; j < J; j++) {
      for (let s = 0; s < S; s++) ofMembers[s] = means[s * J + j];
      ofMembers.sort();
      expected[j] = (ofMembers[(S - 1) >> 1] + ofMembers[S >> 1]) / 2;
    }
    if (shares) { // medians of shares do not sum to one
      const scale = totalOf(row) / Math.max(expected.reduce((a, b) => a + b, 0), 2 ** -1022);
      for (let j = 0; j < J; j++) expected[j] *= scale;
    }
    return expected;
  }

  function respond(s, row) {
    const at = s * J;
    if (shares) {
      const total = totalOf(row);
      let left = 1;
      for (let j = 0; j < K; j++) {
        means[at + j] = total * left * sigmoid(f[j]);
        left *= sigmoid(-f[j]);
      }
      means[at + J - 1] = total * left;
      return;
    }
    for (let j = 0; j < J; j++) {
      predictors[at + j] = f[j];
      means[at + j] = MEANS[decoders[j]](s, j, row, f[j]);
    }
  }

  const MEANS = {
    null: (s, j, row, f) => interpolate(s, j, f),
    gaussian: (s, j, row, f) => f,
    student_t: (s, j, row, f) => f,
    poisson: (s, j, row, f) => Math.exp(f),
    negative_binomial: (s, j, row, f) => r[s * J + j] * Math.exp(f),
    zero_inflated_poisson: (s, j, row, f) => Math.exp(f) / (1 + odds[s * J + j]),
    zero_inflated_negative_binomial: (s, j, row, f) => (r[s * J + j] * Math.exp(f)) / (1 + odds[s * J + j]),
    bernoulli: (s, j, row, f) => sigmoid(f),
    binomial: (s, j, row, f) => trialsOf(row, j) * sigmoid(f),
    ordinal: (s, j, row, f) => {
      const [first, last] = categoriesOf(j);
      let mean = first, cut = 0;
      for (let k = 0; k < last - first; k++) {
        mean += sigmoid(f - cut);
        cut += gapOf(s, k, j);
      }
      return mean;
    },
  };
  const categoriesOf = (j) => [categories[j], categories[J + j]];
  const gapOf = (s, k, j) => (k < nGaps ? gaps[(s * nGaps + k) * J + j] : 0);

  // The cubic through the four tabulated means around f_j; beyond the table, the means at its ends.
  function interpolate(s, j, value) {
    const G = header.arrays.table.shape[1], one = header.arrays.table.shape[0] === 1;
    const u = Math.min(Math.max((value - tableLow[j]) / tableStep[j], 0), G - 1);
    const i = Math.min(Math.max(Math.floor(u) - 1, 0), G - 4), v = u - i;
    const y = (k) => table[((one ? 0 : s) * G + i + k) * J + j];
    return (-(v - 1) * (v - 2) * (v - 3) * y(0)) / 6 + (v * (v - 2) * (v - 3) * y(1)) / 2
      - (v * (v - 1) * (v - 3) * y(2)) / 2 + (v * (v - 1) * (v - 2) * y(3)) / 6;
  }

  // P(y_j <= y) over members, at the position that was decoded last.
  function cdf(y, j, row) {
    let sum = 0;
    for (let s = 0; s < S; s++) sum += CDFS[decoders[j]](y, means[s * J + j], s, j, row);
    return sum / S;
  }

  const poissonCdf = (y, mu) => (y < 0 ? 0 : gammaTail(y + 1, mu));
  const negativeBinomialCdf = (y, mu, shape) =>
    y < 0 ? 0 : mu > 1e9 ? 1 - gammaTail(shape, (shape * y) / mu) : betaCdf(shape / (shape + mu), shape, y + 1);
  const binomialCdf = (y, p, n) => (y < 0 ? 0 : y >= n ? 1 : betaCdf(1 - p, n - y, y + 1));
  const inflated = (y, atLeast, other) => (y < 0 ? 0 : (atLeast + other) / (1 + atLeast)); // atLeast: the odds
  const CDFS = { // of y for the mean mu under member s
    gaussian: (y, mu, s, j) => normalCdf((y - mu) / Math.sqrt(sigma2[s * J + j])),
    student_t: (y, mu, s, j) => studentCdf((y - mu) / Math.sqrt(sigma2[s * J + j]), nu[s * J + j]),
    poisson: poissonCdf,
    negative_binomial: (y, mu, s, j) => negativeBinomialCdf(y, mu, r[s * J + j]),
    zero_inflated_poisson: (y, mu, s, j) =>
      inflated(y, odds[s * J + j], poissonCdf(y, mu * (1 + odds[s * J + j]))),
    zero_inflated_negative_binomial: (y, mu, s, j) =>
      inflated(y, odds[s * J + j], negativeBinomialCdf(y, mu * (1 + odds[s * J + j]), r[s * J + j])),
    bernoulli: (y, mu) => binomialCdf(y, mu, 1),
    binomial: (y, mu, s, j, row) => binomialCdf(y, mu / trialsOf(row, j), trialsOf(row, j)),
    multinomial: (y, mu, s, j, row) => binomialCdf(y, mu / totalOf(row), Math.round(totalOf(row))),
    ordinal: (y, mu, s, j) => {
      const [first, last] = categoriesOf(j);
      if (y < first) return 0;
      if (y >= last) return 1;
      let cut = 0;
      for (let k = 0; k < y - first; k++) cut += gapOf(s, k, j);
      return sigmoid(cut - predictors[s * J + j]);
    },
  };

  function studentCdf(t, freedom) {
    const tail = 0.5 * betaCdf(freedom / (freedom + t * t), freedom / 2, 0.5);
    return t > 0 ? 1 - tail : tail;
  }

  const Z = 1.6448536269514722;

  // The mixture's standard deviation: noise within members and spread between them.
  function deviation(j) {
    let within = 0, between = 0;
    for (let s = 0; s < S; s++) {
      const mu = means[s * J + j];
      const zeros = odds ? odds[s * J + j] : 0; // 0 in columns whose zeros are those of their counts
      const dispersed = (decoders[j] || "").endsWith("negative_binomial") ? (1 + zeros) / r[s * J + j] : 0;
      within += mu + mu * mu * (dispersed + zeros);
      between += (mu - expected[j]) ** 2;
    }
    return Math.sqrt((within + between) / S);
  }

  function quantile(p, j, row) {
    if (!known(j) || !Number.isFinite(expected[j])) return NaN;
    if (decoders[j] === "ordinal") {
      const [first, last] = categoriesOf(j);
      let y = first;
      while (y < last && cdf(y, j, row) < p) y++;
      return y;
    }
    if (decoders[j] === "gaussian" || decoders[j] === "student_t") {
      let a = Infinity, b = -Infinity;
      for (let s = 0; s < S; s++) {
        const end = means[s * J + j] + (p < 0.5 ? -Z : Z) * Math.sqrt(sigma2[s * J + j]);
        a = Math.min(a, end);
        b = Math.max(b, end);
      }
      for (let far = b - a + 1e-9; decoders[j] === "student_t" && cdf(a, j, row) > p; far *= 2) a -= far;
      for (let far = b - a + 1e-9; decoders[j] === "student_t" && cdf(b, j, row) < p; far *= 2) b += far;
      for (let i = 0; i < 40 && b - a > 1e-7 * (1e-12 + high[j] - low[j]); i++) {
        const middle = (a + b) / 2;
        if (cdf(middle, j, row) < p) a = middle; else b = middle;
      }
      return (a + b) / 2;
    }
    // The smallest count y with P(y_j <= y) >= p.
    const sd = deviation(j);
    if (!Number.isFinite(sd)) return NaN;
    let a = -1, b = Math.max(0, Math.round(expected[j] + (p < 0.5 ? -1.6 : 1.7) * sd));
    let jump = 1 + Math.round(sd / 10);
    if (cdf(b, j, row) < p) {
      do { a = b; b += jump; jump *= 2; } while (cdf(b, j, row) < p && Number.isFinite(b));
    } else {
      for (;;) {
        const y = b - jump;
        if (y < 0) break;
        if (cdf(y, j, row) < p) { a = y; break; }
        b = y;
        jump *= 2;
      }
    }
    while (b - a > Math.max(1, 1e-9 * b)) {
      const middle = Math.floor((a + b) / 2);
      if (cdf(middle, j, row) < p) a = middle; else b = middle;
    }
    return b;
  }

  const interval = (j, row) => [quantile(0.05, j, row), quantile(0.95, j, row)];

  // ---------------------------------------------------------------- state

  const strip = D === 1;
  const axes = strip ? [0] : [0, 1];
  const view = { x: 0, y: 0, k: 1 }; // centre, and pixels per unit
  const state = {
    colour: 0, highlight: -1, ellipses: false,
    cursor: { x: 0, y: 0 }, // on the axes that are shown
    hover: -1, a: -1, b: -1, joining: false,
    mode: "free", // what is decoded: "free" the cursor, "row" row a, "path" a place between a and b
    t: 0, playing: false,
  };
  const heights = Float64Array.from({ length: N }, (_, n) => (0.5 + n * 0.6180339887498949) % 1);
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  function position() {
    const x = new Array(D).fill(0);
    if (state.mode === "path") {
      for (let d = 0; d < D; d++) x[d] = (1 - state.t) * X[state.a * D + d] + state.t * X[state.b * D + d];
      return x;
    }
    if (state.a >= 0) for (let d = 0; d < D; d++) x[d] = X[state.a * D + d];
    if (state.mode === "free") {
      x[axes[0]] = state.cursor.x;
      if (!strip) x[axes[1]] = state.cursor.y;
    }
    return x;
  }

  // ---------------------------------------------------------------- plane

  const map = $("map"), pen = map.getContext("2d");
  let wide = 1, tall = 1, ink = {};
  const PAD = 34;

  const sx = (x) => wide / 2 + (x - view.x) * view.k;
  const sy = (y) => tall / 2 - (y - view.y) * view.k;
  const wx = (px) => view.x + (px - wide / 2) / view.k;
  const wy = (py) => view.y - (py - tall / 2) / view.k;
  const rowX = (n) => sx(X[n * D + axes[0]]);
  const rowY = (n) => (strip ? 24 + heights[n] * (tall - 24 - PAD) : sy(X[n * D + axes[1]]));

  function measure() {
    const box = map.getBoundingClientRect(), ratio = devicePixelRatio || 1;
    wide = Math.max(box.width, 1);
    tall = Math.max(box.height, 1);
    map.width = Math.round(wide * ratio);
    map.height = Math.round(tall * ratio);
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  }

  function readInk() {
    const probe = document.createElement("span");
    document.body.append(probe);
    for (const name of ["ink", "soft", "line", "grid", "card", "accent"]) {
      probe.style.color = `var(--${name})`;
      ink[name] = getComputedStyle(probe).color;
    }
    probe.remove();
    ink.dark = getComputedStyle(root).colorScheme === "dark" ||
      (!root.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches);
  }

  function showAll() {
    const ends = axes.map((d) => {
      let a = Infinity, b = -Infinity;
      for (let n = 0; n < N; n++) {
        a = Math.min(a, X[n * D + d]);
        b = Math.max(b, X[n * D + d]);
      }
      return [a, b];
    });
    const span = (i) => Math.max(ends[i][1] - ends[i][0], 1e-6);
    view.x = (ends[0][0] + ends[0][1]) / 2;
    view.y = strip ? 0 : (ends[1][0] + ends[1][1]) / 2;
    view.k = (wide - 2 * PAD) / span(0);
    if (!strip) view.k = Math.min(view.k, (tall - 2 * PAD) / span(1));
    view.k *= 0.95;
    view.all = view.k;
  }

  function zoom(factor, px = wide / 2, py = tall / 2) {
    const x = wx(px), y = wy(py);
    view.k = Math.min(Math.max(view.k * factor, view.all / 8), view.all * 400);
    view.x = x - (px - wide / 2) / view.k;
    view.y = strip ? 0 : y + (py - tall / 2) / view.k;
    refresh();
  }

  function pan(dx, dy) {
    view.x -= dx / view.k;
    if (!strip) view.y += dy / view.k;
  }

  const VIRIDIS = [[68, 1, 84], [71, 45, 123], [59, 82, 139], [44, 114, 142], [33, 145, 140],
    [40, 174, 128], [94, 201, 98], [173, 220, 48], [253, 231, 37]];

  // The darkest part is left out on dark ground, the lightest on light ground.
  function ramp(t) {
    const u = (ink.dark ? 0.2 + 0.8 * t : 0.92 * t) * (VIRIDIS.length - 1);
    const i = Math.min(Math.floor(u), VIRIDIS.length - 2);
    const mix = VIRIDIS[i].map((v, c) => Math.round(v + (u - i) * (VIRIDIS[i + 1][c] - v)));
    return `rgb(${mix})`;
  }

  function range(values) {
    let a = Infinity, b = -Infinity;
    for (const v of values) if (!Number.isNaN(v)) { a = Math.min(a, v); b = Math.max(b, v); }
    return a <= b ? [a, b] : [0, 1];
  }

  const shapeOf = (code) => (code < 0 ? 4 : Math.floor(code / header.palette.length) % 4);
  const colourOf = (code) => (code < 0 ? ink.soft : header.palette[code % header.palette.length]);

  function look(n) { // colour and shape of a row
    const by = colours[state.colour];
    if (!by) return [header.palette[0], 0];
    if (by.classes) return [colourOf(by.values[n]), shapeOf(by.values[n])];
    if (Number.isNaN(by.values[n])) return [ink.soft, 4];
    const [a, b] = by.range;
    return [ramp(b > a ? (by.values[n] - a) / (b - a) : 0.5), 0];
  }

  function mark(pen, x, y, size, colour, shape) {
    pen.beginPath();
    if (shape === 0) pen.arc(x, y, size, 0, 2 * Math.PI);
    else if (shape === 1) { pen.moveTo(x, y - 1.25 * size); pen.lineTo(x + 1.15 * size, y + 0.8 * size); pen.lineTo(x - 1.15 * size, y + 0.8 * size); }
    else if (shape === 2) pen.rect(x - 0.9 * size, y - 0.9 * size, 1.8 * size, 1.8 * size);
    else if (shape === 3) { pen.moveTo(x, y - 1.3 * size); pen.lineTo(x + 1.3 * size, y); pen.lineTo(x, y + 1.3 * size); pen.lineTo(x - 1.3 * size, y); }
    else {
      pen.moveTo(x - size, y - size); pen.lineTo(x + size, y + size);
      pen.moveTo(x + size, y - size); pen.lineTo(x - size, y + size);
      pen.strokeStyle = colour;
      pen.lineWidth = 1.3;
      pen.stroke();
      return;
    }
    pen.fillStyle = colour;
    pen.fill();
  }

  const RADIUS = { 1: 1.6448536269514722, 2: 2.145966026289347 }; // holds 90 % of a standard Gaussian

  function ellipse(n, colour, weight) {
    const at = n * D * D, [i, j] = axes;
    pen.strokeStyle = colour;
    pen.lineWidth = weight;
    pen.beginPath();
    if (strip) {
      const half = RADIUS[1] * Math.sqrt(covariance[at]) * view.k;
      pen.moveTo(rowX(n) - half, rowY(n));
      pen.lineTo(rowX(n) + half, rowY(n));
    } else {
      const a = covariance[at + i * D + i], b = covariance[at + i * D + j], c = covariance[at + j * D + j];
      const middle = (a + c) / 2, away = Math.hypot((a - c) / 2, b);
      const size = (v) => RADIUS[2] * Math.sqrt(Math.max(v, 0)) * view.k;
      pen.ellipse(rowX(n), rowY(n), size(middle + away), size(middle - away), -0.5 * Math.atan2(2 * b, a - c), 0, 2 * Math.PI);
    }
    pen.stroke();
  }

  function ticks(a, b, about) {
    const rough = (b - a) / about, power = 10 ** Math.floor(Math.log10(rough));
    const by = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    const found = [];
    for (let i = Math.ceil(a / by); i * by <= b; i++) found.push(Number((i * by).toPrecision(6)));
    return found;
  }

  function drawGrid() {
    pen.font = "11px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.strokeStyle = ink.grid;
    pen.fillStyle = ink.soft;
    const across = ticks(wx(0), wx(wide), wide / 110), up = strip ? [] : ticks(wy(tall), wy(0), tall / 90);
    pen.beginPath();
    for (const x of across) { pen.moveTo(sx(x), 0); pen.lineTo(sx(x), tall); }
    for (const y of up) { pen.moveTo(0, sy(y)); pen.lineTo(wide, sy(y)); }
    pen.stroke();
    pen.textAlign = "center";
    for (const x of across) if (sx(x) > 40 && sx(x) < wide - 40) pen.fillText(minus(x), sx(x), tall - 8);
    pen.textAlign = "left";
    for (const y of up) if (sy(y) > 34 && sy(y) < tall - 30) pen.fillText(minus(y), 8, sy(y) + 4);
    pen.fillStyle = ink.ink;
    pen.font = "italic 13px system-ui, sans-serif";
    pen.textAlign = "right";
    pen.fillText(`x${below(axes[0] + 1)}`, wide - 12, tall - 8);
    pen.textAlign = "left";
    if (!strip) pen.fillText(`x${below(axes[1] + 1)}`, 8, 20);
  }

  const minus = (v) => String(v).replace("-", "−");
  const below = (v) => [...String(v)].map((c) => "₀₁₂₃₄₅₆₇₈₉"[c]).join("");

  function drawPlane() {
    pen.clearRect(0, 0, wide, tall);
    drawGrid();
    const by = colours[state.colour];
    const dim = (n) => state.highlight >= 0 && by && by.classes && by.values[n] !== state.highlight;
    const size = Math.min(Math.max(2.4, 90 / Math.sqrt(N)), 5) * Math.min(1.7, Math.max(1, (view.k / view.all) ** 0.35));
    if (state.ellipses) {
      for (let n = 0; n < N; n++) {
        pen.globalAlpha = dim(n) ? 0.06 : 0.4;
        ellipse(n, look(n)[0], 1);
      }
    }
    for (let n = 0; n < N; n++) {
      const x = rowX(n), y = rowY(n);
      if (x < -9 || y < -9 || x > wide + 9 || y > tall + 9) continue;
      pen.globalAlpha = dim(n) ? 0.13 : 0.9;
      mark(pen, x, y, size, ...look(n));
    }
    pen.globalAlpha = 1;
    if (by && by.classes && by.classes.length <= 24) drawNames(by);
    drawSelection(size);
  }

  function drawNames(by) { // of classes, at the middle of their rows
    pen.font = "600 12.5px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.lineJoin = "round";
    const taken = [];
    by.classes.forEach((name, code) => {
      if (state.highlight >= 0 && state.highlight !== code) return;
      const ofClass = [...Array(N).keys()].filter((n) => by.values[n] === code);
      if (!ofClass.length || strip) return;
      const middle = (where) => ofClass.map(where).sort((p, q) => p - q)[ofClass.length >> 1];
      const mx = middle(rowX), my = middle(rowY), away = (n) => (rowX(n) - mx) ** 2 + (rowY(n) - my) ** 2;
      const n = ofClass.reduce((p, q) => (away(q) < away(p) ? q : p)); // the row nearest to the middle
      const x = rowX(n), y = rowY(n), text = name.length > 18 ? `${name.slice(0, 17)}…` : name;
      const half = pen.measureText(text).width / 2 + 3;
      if (taken.some((t) => Math.abs(t.x - x) < t.half + half && Math.abs(t.y - y) < 17)) return;
      taken.push({ x, y, half });
      pen.lineWidth = 4;
      pen.strokeStyle = ink.card;
      pen.strokeText(text, x, y - 8); // above the row, which may be the only one of its class
      pen.fillStyle = ink.ink;
      pen.fillText(text, x, y - 8);
    });
  }

  function drawSelection(size) {
    const { a, b, hover } = state;
    if (a >= 0 && b >= 0) {
      pen.strokeStyle = ink.ink;
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 4]);
      pen.beginPath();
      pen.moveTo(rowX(a), rowY(a));
      pen.lineTo(rowX(b), rowY(b));
      pen.stroke();
      pen.setLineDash([]);
    }
    for (const n of new Set([hover, a, b])) {
      if (n < 0) continue;
      ellipse(n, ink.ink, 1.2);
      mark(pen, rowX(n), rowY(n), size + 1.5, ...look(n));
      pen.beginPath();
      pen.arc(rowX(n), rowY(n), size + 4, 0, 2 * Math.PI);
      pen.strokeStyle = ink.ink;
      pen.lineWidth = n === hover && n !== a && n !== b ? 1 : 2;
      pen.stroke();
    }
    let x = sx(state.cursor.x), y = strip ? tall / 2 : sy(state.cursor.y);
    if (state.mode === "row") return;
    if (state.mode === "path") {
      x = rowX(a) + state.t * (rowX(b) - rowX(a));
      y = rowY(a) + state.t * (rowY(b) - rowY(a));
    }
    pen.beginPath();
    pen.arc(x, y, 6, 0, 2 * Math.PI);
    if (strip) { pen.moveTo(x, 8); pen.lineTo(x, y - 6); pen.moveTo(x, y + 6); pen.lineTo(x, tall - PAD + 8); }
    else for (const [p, q] of [[1, 0], [-1, 0], [0, 1], [0, -1]]) { pen.moveTo(x + 6 * p, y + 6 * q); pen.lineTo(x + 12 * p, y + 12 * q); }
    pen.lineWidth = 4;
    pen.strokeStyle = ink.card;
    pen.stroke();
    pen.lineWidth = 1.6;
    pen.strokeStyle = ink.accent;
    pen.stroke();
  }

  function drawLegend() {
    const legend = $("legend"), by = colours[state.colour];
    legend.replaceChildren();
    if (!by) return;
    if (by.classes) {
      const missing = by.values.some((v) => v < 0);
      [...by.classes.keys(), ...(missing ? [-1] : [])].forEach((code) => {
        const button = document.createElement("button"), sign = document.createElement("canvas"), name = document.createElement("span");
        button.type = "button";
        sign.width = sign.height = 28;
        mark(sign.getContext("2d"), 14, 14, 9, colourOf(code), shapeOf(code));
        name.textContent = code < 0 ? "missing" : by.classes[code];
        button.title = name.textContent;
        button.append(sign, name);
        button.setAttribute("aria-pressed", state.highlight === code && code >= 0);
        button.disabled = code < 0;
        button.addEventListener("click", () => {
          state.highlight = state.highlight === code ? -1 : code;
          for (const other of legend.children) other.setAttribute("aria-pressed", other === button && state.highlight >= 0);
          refresh();
        });
        legend.append(button);
      });
    } else {
      const [a, b] = by.range, bar = document.createElement("canvas");
      bar.className = "ramp";
      bar.width = 176;
      bar.height = 1;
      const brush = bar.getContext("2d");
      for (let i = 0; i < 176; i++) { brush.fillStyle = ramp(i / 175); brush.fillRect(i, 0, 1, 1); }
      legend.append(`${by.name}:`, " ", number(a), bar, number(b));
    }
  }

  // ---------------------------------------------------------------- panel

  const SHOWN = 18;
  let listed = [], lines = [], waiting = 0;

  function number(v) {
    if (Number.isNaN(v)) return "–";
    const size = Math.abs(v);
    if (size >= 1e6 || (size > 0 && size < 1e-3)) return minus(v.toExponential(1)).replace("e+", "e").replace("e-", "e−");
    return minus(size >= 1000 ? Math.round(v).toLocaleString("en") : Number(v.toPrecision(3)));
  }

  const doubtful = new Set(header.doubtful); // columns that the table says little about come last

  // How far a column is above its mean over rows, in standard deviations over rows.
  const above = (j) => (spread[j] > 0 ? (expected[j] - centre[j]) / spread[j] : 0);

  function list() {
    const wanted = $("find").value.trim().toLowerCase();
    const all = header.order.filter((j) => columns[j].toLowerCase().includes(wanted));
    const sign = { vary: 0, high: 1, low: -1 }[$("order").value];
    if (sign) all.sort((p, q) => doubtful.has(p) - doubtful.has(q) || sign * (above(q) - above(p)));
    $("found").textContent = wanted ? `${all.length} found` : J > SHOWN ? `${SHOWN} of ${J.toLocaleString("en")}` : "";
    const first = all.slice(0, SHOWN);
    if (first.join() === listed.join()) return;
    listed = first;
    lines = listed.map((j) => {
      const line = document.createElement("li"), part = {};
      const make = (tag, name, parent) => {
        part[name] = document.createElement(tag);
        part[name].className = name;
        parent.append(part[name]);
        return part[name];
      };
      make("span", "name", line).textContent = columns[j];
      part.name.title = columns[j];
      const track = make("div", "track", line);
      make("i", "band", track);
      make("i", "mean", track);
      make("i", "seen", track);
      make("i", "second", track).className = "seen second";
      make("span", "number", line);
      make("span", "ends", line).className = "ends-of";
      return { line, j, ...part };
    });
    $("bars").replaceChildren(...lines.map((line) => line.line));
  }

  const share = (v, j) => `${(100 * Math.min(Math.max((v - low[j]) / (high[j] - low[j]), 0), 1)).toFixed(2)}%`;

  function drawBars(row, withIntervals) {
    list();
    for (const line of lines) {
      const j = line.j;
      line.mean.style.left = share(expected[j], j);
      const ends = withIntervals && known(j) ? interval(j, row) : null;
      line.band.hidden = !ends;
      line.number.textContent = number(expected[j]);
      line.ends.textContent = "";
      if (ends) {
        const [a, b] = ends;
        line.band.style.left = share(a, j);
        line.band.style.right = `calc(100% - ${share(b, j)})`;
        line.ends.textContent = `${number(a)} – ${number(b)}`;
      }
      for (const [sign, n] of [[line.seen, state.a], [line.second, state.b]]) {
        const y = n >= 0 ? cell(n, j) : NaN;
        sign.hidden = Number.isNaN(y);
        if (!sign.hidden) sign.style.left = share(y, j);
      }
    }
  }

  // Intervals that would hold up the pointer wait until it rests.
  const SLOW = 20, REST = 90, SLICE = 8; // milliseconds
  let cost = 0; // of the intervals, recent mean

  const spent = (time) => { cost = 0.75 * cost + 0.25 * time; };

  function drawBarsTimed(row) {
    const start = performance.now();
    drawBars(row, true);
    spent(performance.now() - start);
  }

  // The intervals of all columns, computed in slices of a few milliseconds, so that the page stays responsive.
  function findEnds(row, slice, done) {
    const ends = [new Float64Array(J), new Float64Array(J)];
    let j = 0, time = 0;
    const nextSlice = () => {
      const start = performance.now();
      while (j < J && performance.now() - start < slice) {
        [ends[0][j], ends[1][j]] = interval(j, row);
        j++;
      }
      time += performance.now() - start;
      if (j < J) { waiting = setTimeout(nextSlice); return; }
      spent(time);
      current.ends = ends;
      done();
    };
    nextSlice();
  }

  // Expectation, interval and observed values of column j at the position that is shown, as text.
  function describe(j) {
    const [a, b] = current.ends ? current.ends.map((end) => end[j]) : interval(j, current.row);
    const seen = (n, name) => {
      if (n < 0) return "";
      return Number.isNaN(cell(n, j)) ? `, ${name} missing` : `, ${name} ${number(cell(n, j))}`;
    };
    const between = known(j) ? `, 90 % interval ${number(a)} to ${number(b)}` : "";
    return `model ${number(expected[j])}${between}${seen(state.a, "observed")}${seen(state.b, "second row")}`;
  }

  let grey = [0, 1];

  function drawImage(id, values) {
    const canvas = $(id), [rows, across] = image;
    canvas.width = across;
    canvas.height = rows;
    const brush = canvas.getContext("2d"), picture = brush.createImageData(across, rows);
    for (let j = 0; j < J; j++) {
      const v = values(j), level = Math.round((255 * (v - grey[0])) / (grey[1] - grey[0]));
      picture.data.set(Number.isNaN(v) ? [120, 120, 160, 255] : [level, level, level, 255], 4 * j);
    }
    brush.putImageData(picture, 0, 0);
  }

  function drawNothing(id) {
    $(id).width = image[1];
    $(id).height = image[0];
  }

  function drawQuantiles() {
    ["image-low", "image-high"].forEach((id, i) => {
      drawImage(id, (j) => current.ends[i][j]);
      $(id).classList.remove("stale");
    });
  }

  // ---------------------------------------------------------------- curve, over columns that are in order

  const BOTTOM = 24, INSET = 7, DENSE = 4; // pixels; columns closer than DENSE are drawn as lines, not as dots
  const NAME = 18; // characters of a name on the axis
  const curve = { wide: 0, tall: 0, scale: [0, 1], drawn: "", at: header.order[0] };

  const along = (j) => INSET + (J > 1 ? j / (J - 1) : 0.5) * (curve.wide - 2 * INSET);
  const spot = (j, v) => {
    const [a, b] = curve.scale, y = INSET + ((b - v) / (b - a)) * (curve.tall - 2 * INSET);
    return `${along(j).toFixed(1)} ${Math.min(Math.max(y, -curve.tall), 2 * curve.tall).toFixed(1)}`;
  };

  // Runs of columns that have a value.
  function runs(value) {
    const found = [];
    let before = -2;
    for (let j = 0; j < J; j++) {
      if (Number.isNaN(value(j))) continue;
      if (before < j - 1) found.push([]);
      found.at(-1).push(j);
      before = j;
    }
    return found;
  }

  const through = (run, value) => run.map((j) => spot(j, value(j))).join("L");
  const asLine = (value) => runs(value).map((run) => `M${through(run, value)}h0`).join("");
  const asDots = (value) => runs(value).flat().map((j) => `M${spot(j, value(j))}h0`).join("");
  const asBand = ([lower, upper]) => runs((j) => lower[j] + upper[j]).map(
    (run) => `M${through(run, (j) => upper[j])}L${through(run.reverse(), (j) => lower[j])}Z`).join("");

  function chooseScale() {
    if (!$("closer").checked) { curve.scale = range([...low, ...high]); return; }
    if (!current.ends) return; // it would jump as the intervals come and go
    const seen = [state.a, state.b].filter((n) => n >= 0).flatMap((n) => columns.map((_, j) => cell(n, j)));
    const shown = [...expected, ...current.ends[0], ...current.ends[1], ...seen, header.counts ? 0 : NaN];
    const [a, b] = range(shown.filter(Number.isFinite));
    curve.scale = [a, b > a ? b : a + 1];
  }

  function drawTicks() {
    const { wide, tall } = curve.box, [a, b] = curve.scale;
    const drawn = [wide, tall, a, b].join();
    if (drawn === curve.drawn) return;
    curve.drawn = drawn;
    const draw = (tag, attributes, text = "") => {
      const element = document.createElementNS($("drawing").namespaceURI, tag);
      for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
      element.textContent = text;
      $("ticks").append(element);
    };
    $("ticks").replaceChildren();
    pen.font = "11px system-ui, sans-serif";
    const level = (v) => (Math.abs(v) >= 1e6 ? number(v) : minus(v.toLocaleString("en", { maximumFractionDigits: 9 })));
    const levels = ticks(a, b, tall / 60);
    const left = 8 + Math.max(...levels.map((v) => pen.measureText(level(v)).width));
    Object.assign(curve, { left, wide: wide - left, tall: tall - BOTTOM });
    for (const [name, value] of Object.entries({ x: left, width: curve.wide, height: curve.tall })) $("inside").setAttribute(name, value);
    for (const v of levels) {
      const y = Number(spot(0, v).split(" ")[1]);
      draw("path", { d: `M${left} ${y}H${wide}` });
      draw("text", { x: left - 7, y: y + 4, "text-anchor": "end" }, level(v));
    }
    const short = (j) => (columns[j].length > NAME ? `${columns[j].slice(0, NAME - 1)}…` : columns[j]);
    const widest = Math.max(...columns.map((_, j) => pen.measureText(short(j)).width));
    const parts = Math.max(1, Math.min(J - 1, Math.floor(curve.wide / (1.5 * widest + 12))));
    for (let i = 0; i <= parts && i < J; i++) {
      const j = Math.round((i * (J - 1)) / parts), x = left + along(j);
      const anchor = J === 1 ? "middle" : i === 0 ? "start" : i === parts ? "end" : "middle";
      draw("path", { d: `M${x} ${curve.tall}v4`, class: "tick" });
      draw("text", { x: x + { start: -INSET, middle: 0, end: INSET }[anchor], y: tall - 6, "text-anchor": anchor }, short(j));
    }
    draw("path", { d: `M${left} ${curve.tall}H${wide}`, class: "tick" });
  }

  function drawCurve() {
    chooseScale();
    drawTicks();
    const gap = (curve.wide - 2 * INSET) / Math.max(J - 1, 1), dense = gap < DENSE;
    $("panel").classList.toggle("dense", dense);
    $("curve").style.setProperty("--dot", `${Math.min(Math.max(0.85 * gap, 4), 6.5)}px`);
    $("band").setAttribute("d", current.ends ? asBand(current.ends) : "");
    $("mean").setAttribute("d", asLine((j) => expected[j]));
    for (const [n, ids] of [[state.a, ["seen-a"]], [state.b, ["seen-b", "hollow-b"]]]) {
      const path = n < 0 ? "" : (dense ? asLine : asDots)((j) => cell(n, j));
      for (const id of ids) $(id).setAttribute("d", path);
    }
    drawReading();
  }

  function drawReading() {
    const j = curve.at, text = describe(j);
    $("reading-line").setAttribute("d", `M${along(j)} 0V${curve.tall}`);
    $("reading-dot").setAttribute("d", Number.isNaN(expected[j]) ? "" : `M${spot(j, expected[j])}h0`);
    $("reading-name").textContent = columns[j];
    $("reading").textContent = text;
    $("curve").setAttribute("aria-valuenow", j + 1);
    $("curve").setAttribute("aria-valuetext", `${columns[j]}: ${text}`);
  }

  function readColumn(j) {
    curve.at = Math.min(Math.max(j, 0), J - 1);
    drawReading();
  }

  function startCurve() {
    const box = $("curve"), page = Math.max(1, Math.round(J / 10));
    box.setAttribute("aria-valuemin", 1);
    box.setAttribute("aria-valuemax", J);
    const point = (event) => {
      const x = event.clientX - $("drawing").getBoundingClientRect().left - curve.left - INSET;
      readColumn(Math.round((x / (curve.wide - 2 * INSET)) * (J - 1)));
    };
    box.addEventListener("pointerdown", point);
    box.addEventListener("pointermove", point);
    box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const to = {
        ArrowLeft: curve.at - 1, ArrowRight: curve.at + 1, ArrowDown: curve.at - 1, ArrowUp: curve.at + 1,
        PageDown: curve.at - page, PageUp: curve.at + page, Home: 0, End: J - 1,
      }[event.key];
      if (to === undefined) return;
      event.preventDefault();
      readColumn(to);
    });
    $("closer").addEventListener("change", refresh);
    const measureCurve = () => {
      const { width, height } = $("drawing").getBoundingClientRect();
      curve.box = { wide: Math.max(width, 100), tall: Math.max(height, 60) };
    };
    measureCurve();
    new ResizeObserver(() => { measureCurve(); refresh(); }).observe(box);
  }

  let current = { x: [], row: -1, ends: null };

  function drawPanel() {
    clearTimeout(waiting);
    const x = position(), row = state.a;
    decode(x, row);
    current = { x, row, ends: null };
    const where = x.map((v, d) => `x${below(d + 1)} = ${minus(v.toFixed(2))}`).join(", ");
    const titles = {
      free: () => (state.hover >= 0 && !state.joining ? `At ${nameOf(state.hover)}` : "At the pointer"),
      row: () => nameOf(state.a),
      path: () => `${Math.round(100 * state.t)} % of the way from ${nameOf(state.a)} to ${nameOf(state.b)}`,
    };
    $("where").textContent = titles[state.mode]();
    $("place").textContent = where;
    if (image) {
      drawImage("image-mean", (j) => expected[j]);
      for (const id of ["image-low", "image-high"]) $(id).classList.add("stale");
      if (intervals) waiting = setTimeout(findEnds, REST, row, SLICE, drawQuantiles);
    } else if (ordered && cost < SLOW) {
      findEnds(row, Infinity, drawCurve);
    } else if (ordered) {
      drawCurve();
      waiting = setTimeout(findEnds, REST, row, SLICE, drawCurve);
    } else if (cost < SLOW) {
      drawBarsTimed(row);
    } else {
      drawBars(row, false);
      waiting = setTimeout(drawBarsTimed, REST, row);
    }
  }

  function drawObserved() {
    const { a, b } = state;
    $("key-a").hidden = a < 0;
    $("key-b").hidden = b < 0;
    if (!image) return;
    for (const [n, name] of [[a, "a"], [b, "b"]]) {
      const figure = $(`shown-${name}`);
      figure.classList.toggle("empty", n < 0);
      figure.lastElementChild.textContent = n >= 0 ? `Observed, ${nameOf(n)}` : name === "a" ? "Click a row to see it" : "Second row";
      if (n >= 0) drawImage(`image-${name}`, (j) => cell(n, j));
      else drawNothing(`image-${name}`);
    }
  }

  function readPixel(event) {
    const box = event.target.getBoundingClientRect(), [tallness, across] = image;
    const place = (v, size) => Math.min(Math.max(Math.floor(v * size), 0), size - 1);
    const j = place((event.clientY - box.top) / box.height, tallness) * across + place((event.clientX - box.left) / box.width, across);
    $("pixel").textContent = `${columns[j]}: ${describe(j)}`;
  }

  const say = (text) => { $("spoken").textContent = text; };

  // ---------------------------------------------------------------- drawing, once per frame

  let due = false;

  function refresh() {
    if (due) return;
    due = true;
    requestAnimationFrame(() => {
      due = false;
      drawPlane();
      drawPanel();
    });
  }

  function drawControls() {
    const { a, b } = state;
    const end = (id, n, none) => {
      $(id).textContent = n < 0 ? none : nameOf(n);
      $(id).classList.toggle("none", n < 0);
    };
    end("end-a", a, "no row selected");
    end("end-b", b, state.joining ? "choose a second row" : "no second row");
    $("join").disabled = $("clear").disabled = a < 0;
    $("join").setAttribute("aria-pressed", state.joining);
    $("play").disabled = $("along").disabled = b < 0;
    $("play").textContent = state.playing ? "Pause" : "Play";
    $("play").setAttribute("aria-label", state.playing ? "Pause" : "Play the path");
    $("along").value = Math.round(1000 * state.t);
    map.classList.toggle("joining", state.joining);
    drawObserved();
    refresh();
  }

  // ---------------------------------------------------------------- rows and paths

  function nearest(px, py, reach) {
    let best = -1, least = reach * reach;
    for (let n = 0; n < N; n++) {
      const away = (rowX(n) - px) ** 2 + (rowY(n) - py) ** 2;
      if (away < least) { least = away; best = n; }
    }
    return best;
  }

  function select(n) {
    state.playing = false;
    if (state.joining && state.a >= 0 && n !== state.a) {
      state.b = n;
      state.t = 0;
      state.mode = "path";
      say(`Joined ${nameOf(state.a)} to ${nameOf(n)}. Space plays the path.`);
    } else {
      Object.assign(state, { a: n, b: -1, t: 0, mode: "row" });
      say(`Selected ${nameOf(n)}`);
    }
    state.joining = false;
    drawControls();
  }

  function clear() {
    Object.assign(state, { a: -1, b: -1, t: 0, joining: false, playing: false, mode: "free" });
    say("Nothing is selected");
    drawControls();
  }

  function join() {
    if (state.a < 0) return;
    state.joining = !state.joining;
    drawControls();
  }

  const SECONDS = 5, STEPS = 8; // of a path; with reduced motion it is shown in steps

  function play() {
    if (state.b < 0) return;
    state.playing = !state.playing;
    if (state.playing) {
      if (state.t >= 1) state.t = 0;
      state.mode = "path";
      const from = state.t;
      let start = null;
      const frame = (now) => {
        if (!state.playing) return;
        start ??= now;
        let t = Math.min(from + (now - start) / (1000 * SECONDS), 1);
        if (still.matches) t = Math.floor(t * STEPS) / STEPS;
        state.t = Math.max(t, state.t);
        if (state.t >= 1) state.playing = false;
        drawControls();
        requestAnimationFrame(frame);
      };
      requestAnimationFrame(frame);
    }
    drawControls();
  }

  function hover(n, px, py) {
    state.hover = n;
    const tip = $("tip");
    tip.hidden = n < 0;
    if (n < 0) return;
    const by = colours[state.colour];
    let more = "";
    if (by) {
      const v = by.values[n];
      more = ` · ${by.classes ? (v < 0 ? "missing" : by.classes[v]) : number(v)}`;
    }
    if (ambiguous.has(n)) more += " · two places explain it";
    tip.textContent = nameOf(n) + more;
    tip.style.left = `${Math.min(px + 14, wide - tip.offsetWidth - 6)}px`;
    tip.style.top = `${py + 34 > tall - 10 ? py - 40 : py + 14}px`;
  }

  // ---------------------------------------------------------------- pointer and keys

  const fingers = new Map();
  let pressed = null; // where a press began, and whether it has become a drag

  const local = (event) => {
    const box = map.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };

  function moveCursor(px, py) {
    state.cursor = { x: wx(px), y: strip ? 0 : wy(py) };
    if (!state.playing) state.mode = "free";
  }

  map.addEventListener("pointerdown", (event) => {
    map.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, local(event));
    pressed = fingers.size === 1 ? { at: local(event), dragged: false } : null;
  });

  map.addEventListener("pointermove", (event) => {
    const [px, py] = local(event), before = fingers.get(event.pointerId);
    if (before) {
      fingers.set(event.pointerId, [px, py]);
      if (fingers.size === 2) {
        const [p, q] = [...fingers.values()], other = [...fingers.entries()].find(([id]) => id !== event.pointerId)[1];
        const apart = Math.hypot(p[0] - q[0], p[1] - q[1]), was = Math.hypot(before[0] - other[0], before[1] - other[1]);
        pan((px - before[0]) / 2, (py - before[1]) / 2); // what was between the fingers stays between them
        if (was > 0) zoom(apart / was, (p[0] + q[0]) / 2, (p[1] + q[1]) / 2);
        return;
      }
      if (pressed && Math.hypot(px - pressed.at[0], py - pressed.at[1]) > 4) pressed.dragged = true;
      if (pressed && pressed.dragged) {
        map.classList.add("dragging");
        pan(px - before[0], py - before[1]);
        hover(-1);
        refresh();
      }
      return;
    }
    if (state.mode === "row" && pressed && Math.hypot(px - pressed.at[0], py - pressed.at[1]) < 5) return;
    pressed = null;
    moveCursor(px, py);
    hover(nearest(px, py, 11), px, py);
    refresh();
  });

  function release(event) {
    fingers.delete(event.pointerId);
    map.classList.remove("dragging");
    if (event.type !== "pointerup" || !pressed || pressed.dragged) return;
    const [px, py] = local(event), n = nearest(px, py, event.pointerType === "touch" ? 22 : 11);
    if (n >= 0) { select(n); return; }
    moveCursor(px, py);
    refresh();
  }
  map.addEventListener("pointerup", release);
  map.addEventListener("pointercancel", release);

  map.addEventListener("pointerleave", () => {
    hover(-1);
    if (state.a >= 0 && state.mode === "free") state.mode = state.b >= 0 ? "path" : "row";
    refresh();
  });

  map.addEventListener("wheel", (event) => {
    event.preventDefault();
    const [px, py] = local(event), lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002)), px, py);
  }, { passive: false });

  function cursorOnScreen() {
    return [sx(state.cursor.x), strip ? tall / 2 : sy(state.cursor.y)];
  }

  function nudge(dx, dy) {
    let [px, py] = cursorOnScreen();
    px += dx;
    py += dy;
    const inside = (v, size) => Math.min(Math.max(v, 20), size - 20);
    pan(inside(px, wide) - px, inside(py, tall) - py); // the view follows
    moveCursor(inside(px, wide), inside(py, tall));
    [px, py] = cursorOnScreen();
    hover(strip ? nearestAlong(px, 6) : nearest(px, py, 11), px, py);
    refresh();
  }

  function nearestAlong(px, reach) {
    let best = -1, least = reach;
    for (let n = 0; n < N; n++) if (Math.abs(rowX(n) - px) < least) { least = Math.abs(rowX(n) - px); best = n; }
    return best;
  }

  function goTo(n) {
    state.playing = false;
    state.mode = "free";
    state.cursor = { x: X[n * D + axes[0]], y: strip ? 0 : X[n * D + axes[1]] };
    nudge(0, 0);
    hover(n, rowX(n), rowY(n));
    say(nameOf(n));
  }

  map.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const by = event.shiftKey ? 40 : 8;
    const [px, py] = cursorOnScreen();
    const acts = {
      ArrowLeft: () => nudge(-by, 0), ArrowRight: () => nudge(by, 0),
      ArrowUp: () => nudge(0, -by), ArrowDown: () => nudge(0, by),
      "+": () => zoom(1.3, px, py), "=": () => zoom(1.3, px, py), "-": () => zoom(1 / 1.3, px, py),
      0: () => { showAll(); refresh(); },
      n: () => goTo((state.hover + 1) % N), p: () => goTo((state.hover < 0 ? N : state.hover) - 1 < 0 ? N - 1 : (state.hover < 0 ? N : state.hover) - 1),
      Enter: () => { const n = state.hover >= 0 ? state.hover : strip ? nearestAlong(px, Infinity) : nearest(px, py, Infinity); if (n >= 0) select(n); },
      j: join, " ": play, Escape: clear,
    };
    const act = acts[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  // ---------------------------------------------------------------- start

  $("zoom-in").addEventListener("click", () => zoom(1.5));
  $("zoom-out").addEventListener("click", () => zoom(1 / 1.5));
  $("zoom-reset").addEventListener("click", () => { showAll(); refresh(); });
  $("ellipses").addEventListener("change", (event) => { state.ellipses = event.target.checked; refresh(); });
  $("join").addEventListener("click", join);
  $("play").addEventListener("click", play);
  $("clear").addEventListener("click", clear);
  $("along").addEventListener("input", (event) => {
    Object.assign(state, { t: event.target.value / 1000, mode: "path", playing: false });
    drawControls();
  });
  $("find").addEventListener("input", refresh);
  $("order").addEventListener("change", refresh);

  for (const by of colours) if (!by.classes) by.range = range(by.values);
  if (colours.length) {
    colours.forEach((by, i) => $("colour").append(new Option(by.name, i)));
    $("colour").addEventListener("change", (event) => {
      Object.assign(state, { colour: Number(event.target.value), highlight: -1 });
      drawLegend();
      refresh();
    });
  } else {
    $("colour-choice").hidden = true;
    state.colour = -1;
  }
  if (D > 2) {
    $("axes-choice").hidden = false;
    ["axis-x", "axis-y"].forEach((id, i) => {
      for (let d = 0; d < D; d++) $(id).append(new Option(`x${below(d + 1)}`, d, d === i, d === i));
      $(id).addEventListener("change", (event) => {
        const d = Number(event.target.value);
        if (axes[1 - i] === d) { // the two change places
          axes[1 - i] = axes[i];
          $(i ? "axis-x" : "axis-y").value = axes[i];
        }
        axes[i] = d;
        showAll();
        refresh();
      });
    });
  }
  if (image) {
    grey = range(observed instanceof Uint16Array ? observed.filter((v) => v !== header.missing) : observed);
    if (grey[1] <= grey[0]) grey[1] = grey[0] + 1;
    $("pictures").hidden = $("pixel").hidden = false;
    $("pixel").textContent = "Point at a pixel for its value.";
    $("pictures").addEventListener("pointermove", (event) => { if (event.target.tagName === "CANVAS") readPixel(event); });
  } else if (ordered) {
    $("course").hidden = $("key").hidden = false;
    $("panel").classList.add("curved");
  } else {
    $("listing").hidden = $("key").hidden = false;
    $("order").hidden = J <= SHOWN;
  }
  $("plane").classList.toggle("strip", strip);
  $("stage").hidden = false;
  if (ordered) startCurve();

  function reink() {
    readInk();
    drawLegend();
    refresh();
  }
  root.addEventListener("theme", reink);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", reink);
  new ResizeObserver(() => { measure(); refresh(); }).observe($("plane"));
  measure();
  showAll();
  reink();
  drawControls();

  // For tests and the console: decode any position, with the offset, trials and total of a row if one is given.
  window.rflvm = {
    decode(x, row = -1, withIntervals = null) {
      const values = Array.from(decode(x, row));
      const ends = (withIntervals || []).map((j) => interval(j, row));
      refresh();
      return { expected: values, interval: ends };
    },
    current: () => ({ ...state, x: current.x, row: current.row, expected: Array.from(expected) }),
    screen: (n) => [rowX(n), rowY(n)],
  };
})();
