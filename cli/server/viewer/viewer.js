// Slices of one array, read through Zarr: a slider for each axis that is not shown, the two shown
// axes, limits of the contrast, and a colour map. Pixels are nearest items, one for each.
import * as zarr from "zarrita";

const MOST = 2048; // pixels of a side; longer axes are read with a step

const MAPS = {
  gray: [[0, 0, 0], [255, 255, 255]],
  viridis: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  magma: [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]],
  coolwarm: [[59, 76, 192], [221, 221, 221], [180, 4, 38]],
};

const $ = (id) => document.getElementById(id);

/** The 256 colours of a map, as bytes r, g, b. */
function colours(stops) {
  const out = new Uint8ClampedArray(256 * 3);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1), k = Math.min(Math.floor(at), stops.length - 2);
    for (let c = 0; c < 3; c++)
      out[3 * i + c] = stops[k][c] + (at - k) * (stops[k + 1][c] - stops[k][c]);
  }
  return out;
}

function element(tag, properties, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

/** The messages of an error and its causes. */
function reason(error) {
  return error.cause ? `${error.message}: ${reason(error.cause)}` : error.message ?? String(error);
}

class Viewer {
  constructor(array, names) {
    this.array = array;
    this.names = names;
    this.shape = array.shape;
    const n = this.shape.length;
    this.index = this.shape.map((length) => Math.floor(length / 2));
    this.rows = n > 1 ? n - 2 : -1; // axis of the rows; -1: one row
    this.columns = n - 1;
    this.wanted = 0; // number of the latest drawing
  }

  step(axis) {
    return Math.ceil(this.shape[axis] / MOST);
  }

  /** Reads the slice as numbers in C order: {data, height, width}. */
  async read() {
    const shown = [this.rows, this.columns];
    const selection = this.shape.map((length, axis) =>
      shown.includes(axis) ? zarr.slice(0, length, this.step(axis)) : this.index[axis]);
    const found = await zarr.get(this.array, selection);
    if (this.shape.length === 0) return { data: [Number(found)], height: 1, width: 1 };
    const shape = this.rows < 0 ? [1, found.shape[0]] : found.shape;
    const strides = this.rows < 0 ? [0, found.stride[0]] : found.stride;
    const swap = this.rows > this.columns;
    const [height, width] = swap ? [shape[1], shape[0]] : shape;
    const [down, right] = swap ? [strides[1], strides[0]] : strides;
    const data = new Float64Array(height * width);
    const get = found.data.get ? (i) => found.data.get(i) : (i) => found.data[i];
    for (let y = 0, at = 0; y < height; y++)
      for (let x = 0; x < width; x++, at++) data[at] = Number(get(y * down + x * right));
    return { data, height, width };
  }

  limits(data) {
    let lo = Infinity, hi = -Infinity;
    for (const value of data) {
      if (!Number.isFinite(value)) continue;
      if (value < lo) lo = value;
      if (value > hi) hi = value;
    }
    return lo > hi ? [0, 1] : [lo, hi > lo ? hi : lo + 1];
  }

  paint({ data, height, width }) {
    if ($("automatic").checked)
      [$("low").value, $("high").value] = this.limits(data);
    const lo = Number($("low").value), hi = Number($("high").value);
    const map = colours(MAPS[$("map").value]);
    const canvas = $("picture"), image = new ImageData(width, height);
    for (let i = 0; i < data.length; i++) {
      const value = data[i];
      if (Number.isNaN(value)) continue; // transparent
      const k = 3 * Math.max(0, Math.min(255, Math.floor(((value - lo) / (hi - lo)) * 256)));
      image.data.set([map[k], map[k + 1], map[k + 2], 255], 4 * i);
    }
    canvas.width = width;
    canvas.height = height;
    canvas.style.width = `${width * Math.max(1, Math.floor(512 / Math.max(width, height)))}px`;
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  /** Reads and paints; a later call overtakes. */
  async draw() {
    const mine = ++this.wanted;
    document.body.dataset.state = "reading";
    try {
      const slice = await this.read();
      if (mine !== this.wanted) return;
      this.slice = slice;
      this.paint(slice);
      $("status").textContent = "";
      document.body.dataset.state = "done";
    } catch (error) {
      if (mine !== this.wanted) return;
      $("status").textContent = `This slice cannot be read: ${reason(error)}`;
      document.body.dataset.state = "failed";
    }
  }

  repaint() {
    if (this.slice) this.paint(this.slice);
  }

  axisChoice(id, chosen, other) {
    const select = element("select", { id });
    this.names.forEach((name, axis) => select.append(
      element("option", { value: axis, textContent: name, selected: axis === chosen })));
    select.onchange = () => {
      const axis = Number(select.value);
      if (axis === this[other]) this[other] = this[id];
      this[id] = axis;
      this.controls();
      this.draw();
    };
    return select;
  }

  slider(axis) {
    const shown = element("output", { textContent: this.index[axis] });
    const range = element("input", {
      type: "range", id: `axis${axis}`, min: 0, max: this.shape[axis] - 1,
      value: this.index[axis],
    });
    range.oninput = () => {
      this.index[axis] = Number(range.value);
      shown.textContent = range.value;
      this.draw();
    };
    return element("label", {}, this.names[axis], range, shown);
  }

  controls() {
    const kept = ["low", "high", "map", "automatic"].map((id) => $(id));
    const form = $("controls");
    form.replaceChildren();
    form.onsubmit = (event) => event.preventDefault();
    if (this.shape.length > 1)
      form.append(
        element("label", {}, "rows", this.axisChoice("rows", this.rows, "columns")),
        element("label", {}, "columns", this.axisChoice("columns", this.columns, "rows")));
    this.shape.forEach((_, axis) => {
      if (axis !== this.rows && axis !== this.columns) form.append(this.slider(axis));
    });
    let [low, high, map, automatic] = kept;
    if (!low) {
      low = element("input", { type: "number", id: "low", step: "any" });
      high = element("input", { type: "number", id: "high", step: "any" });
      automatic = element("input", { type: "checkbox", id: "automatic", checked: true });
      map = element("select", { id: "map" });
      for (const name of Object.keys(MAPS))
        map.append(element("option", { value: name, textContent: name }));
      low.oninput = high.oninput = () => {
        automatic.checked = false;
        this.repaint();
      };
      automatic.onchange = map.onchange = () => this.repaint();
    }
    form.append(
      element("label", {}, "from", low), element("label", {}, "to", high),
      element("label", {}, automatic, "automatic contrast"), element("label", {}, "colours", map));
  }
}

async function main() {
  const path = location.pathname.replace(/^\/view\//, "").replace(/\/+$/, "");
  $("name").textContent = decodeURIComponent(path);
  document.title = decodeURIComponent(path);
  const store = new zarr.FetchStore(`${location.origin}/${path}`);
  const array = await zarr.open.v3(store, { kind: "array" });
  const meta = await (await fetch(`/${path}/zarr.json`)).json();
  const names = array.shape.map((_, axis) => meta.dimension_names?.[axis] ?? `axis ${axis}`);
  $("about").textContent = `${array.shape.join(" × ") || "()"}, ${array.dtype}`;
  if (!/^(bool|u?int\d+|float\d+)$/.test(array.dtype))
    throw new Error(`items of type ${array.dtype} are not shown`);
  if (array.shape.includes(0)) throw new Error("the array is empty");
  const viewer = new Viewer(array, names);
  viewer.controls();
  await viewer.draw();
}

main().catch((error) => {
  $("status").textContent = `This array cannot be shown: ${reason(error)}`;
  document.body.dataset.state = "failed";
});
