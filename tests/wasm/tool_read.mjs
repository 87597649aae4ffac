// Reads the frames of test_wasm.py with caterva.wasm and compares the bytes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

import { CatervaError, load } from "../../wasm/caterva.mjs";

const [wasm, list] = process.argv.slice(2);
const { cases, huge, many } = JSON.parse(readFileSync(list));

// The library's own functions, to take its memory.
let library;
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...given) => {
    const instance = await instantiate(...given);
    library = instance.exports;
    return instance;
};
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

function compareCase(one) {
    const frame = new Uint8Array(readFileSync(one.frame));
    const wanted = readFileSync(one.items);
    for (const array of [caterva.open(frame), caterva.openStore(storeOf(frame, { bytes: 0 }))]) {
        compare(array, wanted, one);
        array.close();
    }
}
cases.forEach(compareCase);

// Damage is an error with a status, and an exception of a store is thrown again.
const frame = new Uint8Array(readFileSync(cases[0].frame));
const cut = { name: "CatervaError", status: "CATERVA_ECORRUPT" };
assert.throws(() => caterva.open(frame.subarray(0, 50)), cut);
assert.throws(() => caterva.open(new Uint8Array(0)), CatervaError);
const broken = { size: () => frame.length, read() { throw new TypeError("broken"); } };
assert.throws(() => caterva.openStore(broken), { name: "TypeError", message: "broken" });

// Bytes may be an ArrayBuffer or any view. Errors name what else the program gives.
const kinds = [
    (bytes) => bytes.slice().buffer,
    (bytes) => new DataView(bytes.slice().buffer),
    (bytes) => (bytes.length % 2 ? bytes : new Uint16Array(bytes.slice().buffer)),
    (bytes) => Buffer.from(bytes),
    (bytes) => new Uint8Array([0, ...bytes, 0]).subarray(1, bytes.length + 1),
];
function opened(frame, convert) {
    const { size, read } = storeOf(frame, { bytes: 0 });
    return caterva.openStore({ size, read: (...range) => convert(read(...range)) });
}
const whole = caterva.open(frame).read();
for (const kind of kinds) {
    assert.deepEqual(opened(frame, kind).read(), whole);
    assert.deepEqual(caterva.open(kind(frame)).read(), whole);
}
for (const [convert, message] of [[(bytes) => String(bytes), /not a Uint8Array, but String/],
                                  [(bytes) => new Blob([bytes]), /but Blob/],
                                  [async (bytes) => bytes, /but Promise.* at once/],
                                  [(bytes) => [...bytes], /but Array/],
                                  [() => undefined, /but Undefined/]]) {
    assert.throws(() => caterva.open(convert(frame)), { name: "TypeError", message });
    assert.throws(() => opened(frame, convert), { name: "TypeError", message });
}
for (const size of ["9", -1, 1.5, 2 ** 53, 9n, undefined, Promise.resolve(9)])
    assert.throws(() => caterva.openStore({ size: () => size, read() {} }), /no number of bytes/);

// A store's read may use other arrays, but not the one in the store. Each read of the largest
// frame does one of both: afterwards the array still has its items.
const sizes = cases.map((one) => readFileSync(one.frame).length);
const largest = cases[sizes.indexOf(Math.max(...sizes))];
const stored = new Uint8Array(readFileSync(largest.frame));
const items = caterva.open(stored).read();
function during(nth, call) {
    let array = null, calls = 0, thrown = null;
    const { size, read } = storeOf(stored, { bytes: 0 });
    const store = { size, read(...range) {
        if (array && ++calls === nth) call(array);
        return read(...range);
    } };
    array = caterva.openStore(store);
    try {
        assert.deepEqual(array.read(), items);
    } catch (error) {
        thrown = error;
    }
    const called = calls >= nth;
    calls = nth;
    assert.deepEqual(array.read(), items);
    array.close();
    return { called, thrown };
}
const busy = { name: "CatervaError", status: "CATERVA_EBUSY", message: /its own store uses it/ };
for (const call of [(array) => array.read(), (array) => array.close(),
                    (array) => array.attribute("none")]) {
    let nth = 1;
    for (;; nth++) {
        const swallowed = during(nth, (array) => assert.throws(() => call(array), busy));
        if (!swallowed.called) break;
        assert.equal(swallowed.thrown, null);
        const { thrown } = during(nth, (array) => call(array));
        if (thrown) assert.equal(thrown.status, busy.status);
        const other = during(nth, () => cases.slice(0, 3).forEach(compareCase));
        assert.equal(other.thrown, null);
        const nested = during(nth, () => caterva.openStore(broken));
        if (nested.thrown) assert.equal(nested.thrown.message, "broken");
    }
    assert.ok(nth > 2);
}
const endless = { size: () => frame.length, read: () => caterva.openStore(endless) };
assert.throws(() => caterva.openStore(endless), /too many stores/);
compareCase(cases[0]);

// 4 TiB of equal items: a part can be read, 4 GiB at once cannot.
const large = caterva.open(new Uint8Array(readFileSync(huge)));
const part = new Int32Array(large.read([1073741000, 5], [1073741002, 8]).buffer);
assert.deepEqual([...part], [7, 7, 7, 7, 7, 7]);
assert.throws(() => large.read([0, 0], [1 << 20, 1 << 10]), RangeError);
for (const n of [2 ** 64, 2 ** 53, -(2 ** 53), 0.5, NaN, Infinity, "0", 0n, undefined])
    for (const box of [[[n, 0], [2, 2]], [[0, 0], [2, n]]])
        assert.throws(() => large.read(...box), { message: /is not an integer/ });
assert.throws(() => large.read([2 ** 30, 0], [2 ** 30 + 1, 1]), { status: "CATERVA_ERANGE" });
assert.throws(() => large.read([0], [1]), /2 dimensions/);
assert.throws(() => large.attribute("title\0x"), /cannot have a zero/);
large.close();
large.close();
assert.throws(() => large.read([0, 0], [1, 1]), { status: "CATERVA_EINVAL" });
assert.throws(() => caterva.open(new Uint8Array(readFileSync(many))), /addresses of 32 bits/);

// Memory beyond 2 GiB, whose addresses are negative as integers of 32 bits, and almost 4 GiB. What
// was released serves requests of about the same size.
const taken = [];
const take = (size) => {
    const at = library.allocate(size - 64);
    return at !== 0 && taken.push(at);
};
assert.ok(take(2 ** 30) && take(2 ** 30));
const vast = caterva.open(new Uint8Array(readFileSync(huge)));
const readVast = () => new Int32Array(vast.read([0, 0], [30000, 1 << 10]).buffer);
assert.ok(readVast().every((item) => item === 7));
assert.ok(library.memory.buffer.byteLength > 2 ** 31);
const some = cases.slice(0, 20);
some.forEach(compareCase);
assert.throws(() => vast.attribute("none"), { message: /"none"/, status: "CATERVA_ENOTFOUND" });

for (let size = 2 ** 30; size >= 2 ** 24; size /= 2) while (take(size));
assert.ok(library.memory.buffer.byteLength > 2 ** 32 - 2 ** 25);
assert.throws(readVast, /no memory/);
assert.throws(() => caterva.open(new Uint8Array(2 ** 27)), /no memory/);
some.forEach(compareCase);
taken.forEach((at) => library.release(at));
assert.equal(readVast().length, 30000 * 1024);
some.forEach(compareCase);
vast.close();

const boxes = cases.reduce((n, one) => n + one.boxes.length, 0);
console.log(`${cases.length} frames and ${boxes} boxes of them, in memory and in a store: equal`);
