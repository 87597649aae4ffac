// Reads Zarr arrays by zarrita.js, for test_zarr.py:
//
//     node tool_zarrita.mjs PACKAGES
//
// Each line on stdin is JSON: the URL of an array, a box as [start, stop] of each axis, and a file.
// All items and those of the box go to the file, in C order; the response is a line, "ok" or the
// message of an error.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const zarrita = join(process.argv[2], "zarrita", "dist", "src", "index.js");
const zarr = await import(pathToFileURL(zarrita));

const ARRAYS = {
  bool: Uint8Array, int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array,
  int32: Int32Array, uint32: Uint32Array, int64: BigInt64Array, uint64: BigUint64Array,
  float32: Float32Array, float64: Float64Array,
};

/** The bytes of a chunk of zarrita, or of one item. */
function bytesOf(dtype, found) {
  const { buffer, byteOffset, byteLength } = found?.data ?? new ARRAYS[dtype]([found]);
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** A fetch with at most 100 requests at once: Node opens a connection for each, nginx has 512. */
const queue = [];
let running = 0;
async function fetchSome(request) {
  if (running === 100) await new Promise((go) => queue.push(go));
  else running++;
  try {
    return await fetch(request);
  } finally {
    if (queue.length > 0) queue.shift()();
    else running--;
  }
}

/** The bytes of a box; zarrita refuses empty ones. */
async function readBox(array, box) {
  if (box.some(([start, stop]) => start === stop)) return new Uint8Array(0);
  const selection = box.map(([start, stop]) => zarr.slice(start, stop));
  return bytesOf(array.dtype, await zarr.get(array, selection));
}

async function read({ url, box, out }) {
  const array = await zarr.open.v3(new zarr.FetchStore(url, { fetch: fetchSome }), { kind: "array" });
  const whole = await readBox(array, array.shape.map((length) => [0, length]));
  writeFileSync(out, Buffer.concat([whole, await readBox(array, box)]));
}

for await (const line of createInterface({ input: process.stdin })) {
  try {
    await read(JSON.parse(line));
    console.log("ok");
  } catch (error) {
    console.log(JSON.stringify(`${error.message} ${error.cause?.message ?? ""}`));
  }
}
