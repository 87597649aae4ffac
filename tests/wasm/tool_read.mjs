// Reads the frames of test_wasm.py with caterva.wasm and compares the bytes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { CatervaError, load } from "../../wasm/caterva.mjs";

const [wasm, list] = process.argv.slice(2);
const { cases, huge, many } = JSON.parse(readFileSync(list));
const caterva = await load(readFileSync(wasm));

function storeOf(frame, log) {
    return {
        size: () => frame.length,
        read(pos, size) {
            log.bytes += Math.min(size, frame.length - pos);
            return frame.subarray(pos, pos + size);
        },
    };
}

function compare(array, wanted, one) {
    assert.deepEqual(array.shape, one.shape, one.name);
    assert.equal(array.itemSize, one.itemSize, one.name);
    let at = 0;
    const check = (got, what) => {
        const want = wanted.subarray(at, at + got.length);
        assert.ok(Buffer.compare(got, want) === 0, `${one.name}: ${what} differs`);
        at += got.length;
    };
    check(array.read(), "the whole array");
    for (const [start, stop] of one.boxes) check(array.read(start, stop), `${start} to ${stop}`);
    assert.equal(at, wanted.length, one.name);
}

let boxes = 0;
for (const one of cases) {
    const frame = new Uint8Array(readFileSync(one.frame));
    const wanted = readFileSync(one.items);
    for (const array of [caterva.open(frame), caterva.openStore(storeOf(frame, { bytes: 0 }))]) {
        compare(array, wanted, one);
        array.close();
    }
    boxes += one.boxes.length;
}

// Damage is an error with a status, and an exception of a store is thrown again.
const frame = new Uint8Array(readFileSync(cases[0].frame));
assert.throws(() => caterva.open(frame.subarray(0, 50)), CatervaError);
assert.throws(() => caterva.open(new Uint8Array(0)), CatervaError);
const broken = { size: () => frame.length, read() { throw new TypeError("broken"); } };
assert.throws(() => caterva.openStore(broken), { name: "TypeError", message: "broken" });

// 4 TiB of equal items: a part can be read, 4 GiB at once cannot.
const large = caterva.open(new Uint8Array(readFileSync(huge)));
const part = new Int32Array(large.read([1073741000, 5], [1073741002, 8]).buffer);
assert.deepEqual([...part], [7, 7, 7, 7, 7, 7]);
assert.throws(() => large.read([0, 0], [1 << 20, 1 << 10]), RangeError);
large.close();
assert.throws(() => caterva.open(new Uint8Array(readFileSync(many))), /addresses of 32 bits/);

console.log(`${cases.length} frames and ${boxes} boxes of them, in memory and in a store: equal`);
