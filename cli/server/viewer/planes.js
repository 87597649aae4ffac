// Planes of arrays, read through Zarr, and their pictures.
import * as zarr from "zarrita";

/** Colour maps: stops at equal distances. */
export const MAPS = {
  gray: [[0, 0, 0], [255, 255, 255]],
  viridis: [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]],
  magma: [[0, 0, 4], [81, 18, 124], [183, 55, 121], [252, 137, 97], [252, 253, 191]],
  coolwarm: [[59, 76, 192], [221, 221, 221], [180, 4, 38]],
};

/** Opens the array at a path of this server. */
export function openArray(path) {
  return zarr.open.v3(new zarr.FetchStore(`${location.origin}/${path}`), { kind: "array" });
}

/** Whether items of this type have pictures. */
export function hasPicture(dtype) {
  return /^(bool|u?int\d+|float\d+)$/.test(dtype);
}

/** The axes of rows and columns of a first picture, -1 for none: the last two, but not channels. */
export function pictureAxes(shape) {
  let columns = shape.length - 1;
  while (columns > 1 && shape[columns] <= 4) columns--;
  return [columns > 0 ? columns - 1 : -1, columns];
}

/** The number of chunks that a range of an axis touches. */
function chunksOf([start, stop], chunk) {
  return Math.ceil(stop / chunk) - Math.floor(start / chunk);
}

/** The middle of a plane that touches at most `most` chunks, as [start, stop] for rows and columns: the
 *  whole plane if possible, else the longer side is halved. Axes of -1 have one item. Null: a few items
 *  are too much already. */
export function middleOf(array, axes, most) {
  const chunks = axes.map((axis) => array.chunks[axis] ?? 1);
  const ranges = axes.map((axis) => [0, array.shape[axis] ?? 1]);
  for (;;) {
    const [n, m] = ranges.map((range, k) => chunksOf(range, chunks[k]));
    if (n * m <= most) return ranges;
    const k = n > m ? 0 : 1, [start, stop] = ranges[k];
    if (stop - start < 4) return null;
    const quarter = Math.floor((stop - start) / 4);
    ranges[k] = [start + quarter, stop - quarter];
  }
}

/** The bytes of a chunk, at most. */
export function chunkBytes(array) {
  return array.chunks.reduce((product, n) => product * n, 8);
}

/** Reads a plane as numbers in C order, {data, height, width}. A range is [start, stop, step];
 *  `index` has the place on the other axes. Axes of -1 have one item. */
export async function readPlane(array, index, [rows, columns], [down, right], signal) {
  const selection = [...index];
  if (rows >= 0) selection[rows] = zarr.slice(...down);
  if (columns >= 0) selection[columns] = zarr.slice(...right);
  const found = await zarr.get(array, selection, { signal });
  if (columns < 0) return { data: [Number(found)], height: 1, width: 1 };
  const shape = rows < 0 ? [1, found.shape[0]] : found.shape;
  const strides = rows < 0 ? [0, found.stride[0]] : found.stride;
  const order = rows > columns ? [1, 0] : [0, 1];
  const [height, width] = order.map((k) => shape[k]);
  const [toRow, toColumn] = order.map((k) => strides[k]);
  const data = new Float64Array(height * width);
  const get = found.data.get ? (i) => found.data.get(i) : (i) => found.data[i];
  for (let y = 0, at = 0; y < height; y++)
    for (let x = 0; x < width; x++, at++) data[at] = Number(get(y * toRow + x * toColumn));
  return { data, height, width };
}

/** The least and the largest finite number; the second is larger. */
export function limits(data) {
  let lo = Infinity, hi = -Infinity;
  for (const value of data) {
    if (!Number.isFinite(value)) continue;
    if (value < lo) lo = value;
    if (value > hi) hi = value;
  }
  return lo > hi ? [0, 1] : [lo, hi > lo ? hi : lo + 1];
}

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

/** Paints a plane, one pixel for each item; NaN is transparent. */
export function paint(canvas, { data, height, width }, [lo, hi], name) {
  const map = colours(MAPS[name]), image = new ImageData(width, height);
  for (let i = 0; i < data.length; i++) {
    const value = data[i];
    if (Number.isNaN(value)) continue;
    const k = 3 * Math.max(0, Math.min(255, Math.floor(((value - lo) / (hi - lo)) * 256)));
    image.data.set([map[k], map[k + 1], map[k + 2], 255], 4 * i);
  }
  canvas.width = width;
  canvas.height = height;
  canvas.getContext("2d").putImageData(image, 0, 0);
}
