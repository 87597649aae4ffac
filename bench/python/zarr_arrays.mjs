// Reads a box of a Zarr array by zarrita.js, for zarr_arrays.py:
//
//     node zarr_arrays.mjs PACKAGES
//
// Each line on stdin is JSON: the URL of an array, and for each axis an index or [start, stop]. The
// answer is the seconds, the number of items and the last item.
import { join } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const zarrita = join(process.argv[2], "zarrita", "dist", "src", "index.js");
const zarr = await import(pathToFileURL(zarrita));
console.log("ready");

for await (const line of createInterface({ input: process.stdin })) {
  const [url, box] = JSON.parse(line);
  const selection = box.map((s) => (Array.isArray(s) ? zarr.slice(...s) : s));
  const begun = performance.now();
  const array = await zarr.open.v3(new zarr.FetchStore(url), { kind: "array" });
  const { data } = await zarr.get(array, selection);
  const seconds = (performance.now() - begun) / 1e3;
  console.log(JSON.stringify([seconds, data.length, data[data.length - 1]]));
}
