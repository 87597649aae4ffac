// Caterva in JavaScript: reads Blosc2 arrays with caterva.wasm, in a browser, a worker or Node.
//
//     const caterva = await load(bytesOfWasm);
//     const array = caterva.open(bytesOfFrame);          // a Uint8Array, copied once
//     const array = caterva.openStore({size, read});     // what is needed is read
//     array.shape, array.dtype, array.itemSize           // dtype as NumPy writes it: "<f4"
//     array.read([0, 10], [5, 20])                       // Uint8Array in C order
//     array.close();
//
// Everything is synchronous and uses the calling thread only. A store has size(), the number of
// bytes, and read(position, size), which returns a Uint8Array of up to `size` bytes, at least one
// if there are any; both may throw. They may use other arrays, but not their own, whose
// calls throw CATERVA_EBUSY until they return. Bytes may also be an ArrayBuffer or any view of one.
// Numbers are Numbers: up to 2^53. Released memory serves requests of about the same size only.

/** An error of the library; `status` is its name, such as "CATERVA_ECORRUPT". */
export class CatervaError extends Error {
    constructor(message, status) {
        super(message);
        this.name = "CatervaError";
        this.status = status;
    }
}

const MOST_NESTED = 32; // calls in reads of stores: the stack has room for more than 256
const NOT_OPEN = 8; // WASI's EBADF, for calls about files: there are none

/** Prepares the library; `wasm` is the bytes of caterva.wasm, or a WebAssembly.Module. */
export async function load(wasm) {
    const module = wasm instanceof WebAssembly.Module ? wasm : await WebAssembly.compile(wasm);
    const host = new Host();
    const functions = { caterva: host.stores(), wasi_snapshot_preview1: host.system() };
    const imports = { caterva: {}, wasi_snapshot_preview1: {} };
    for (const { module: from, name } of WebAssembly.Module.imports(module))
        imports[from][name] = fromLibrary(functions[from][name] ?? (() => NOT_OPEN));
    const { exports } = await WebAssembly.instantiate(module, imports);
    host.memory = exports.memory;
    for (const [name, call] of Object.entries(exports))
        if (call !== exports.memory) host.calls[name] = (...args) => unsigned(call(...args));
    host.calls._initialize();
    return new Caterva(host);
}

// JavaScript takes 32-bit integers of WebAssembly as signed: here they are addresses and sizes.
const unsigned = (value) => (typeof value === "number" ? value >>> 0 : value);
const fromLibrary = (call) => (...args) => call(...args.map(unsigned));

// The bytes that the program gives, in memory that they share.
function bytesOf(given, what) {
    if (ArrayBuffer.isView(given))
        return new Uint8Array(given.buffer, given.byteOffset, given.byteLength);
    const kind = Object.prototype.toString.call(given).slice("[object ".length, -1);
    if (/^(Shared)?ArrayBuffer$/.test(kind)) return new Uint8Array(given);
    const hint = kind === "Promise" ? ": a store must answer at once" : "";
    throw new TypeError(`${what} is not a Uint8Array, but ${kind}${hint}`);
}

class Host {
    calls = {}; // the functions of the library
    numbers = new Map(); // of stores
    next = 1;
    thrown = null; // by a store, to be thrown again
    nested = 0; // calls that are running

    // The memory's buffer is another one after it has grown.
    view() {
        return new DataView(this.memory.buffer);
    }
    bytes(at, size) {
        return new Uint8Array(this.memory.buffer, at, size);
    }
    text(at) {
        const all = new Uint8Array(this.memory.buffer, at);
        return new TextDecoder().decode(all.slice(0, all.indexOf(0)));
    }

    stores() {
        const guard = (failed, call) => {
            try {
                return call();
            } catch (error) {
                this.thrown = error;
                return failed;
            }
        };
        return {
            store_size: (n) =>
                guard(-1n, () => {
                    const size = this.numbers.get(n).size();
                    if (Number.isSafeInteger(size) && size >= 0) return BigInt(size);
                    throw new TypeError(`what size() returned is no number of bytes: ${size}`);
                }),
            store_read: (n, pos, dst, size) =>
                guard(-1, () => {
                    const read = this.numbers.get(n).read(Number(pos), size);
                    const bytes = bytesOf(read, "what read() returned");
                    if (bytes.length > size) throw new RangeError("a store returned too much");
                    this.bytes(dst, bytes.length).set(bytes);
                    return bytes.length;
                }),
            store_close: (n) => this.numbers.delete(n),
        };
    }

    system() {
        return {
            clock_time_get: (clock, precision, out) => {
                const ms = clock === 0 ? Date.now() : performance.now();
                this.view().setBigUint64(out, BigInt(Math.round(ms * 1e6)), true);
                return 0;
            },
            random_get: (at, size) => {
                globalThis.crypto.getRandomValues(this.bytes(at, size));
                return 0;
            },
            environ_sizes_get: (count, size) => {
                this.view().setUint32(count, 0, true);
                this.view().setUint32(size, 0, true);
                return 0;
            },
            environ_get: () => 0,
            proc_exit: (status) => {
                throw new Error(`caterva.wasm ended with status ${status}`);
            },
        };
    }

    // Calls a function of the library that returns 0 after an error. An exception of a store is
    // thrown again after the library has returned, whose frames cannot be unwound.
    run(name, ...given) {
        if (this.nested === MOST_NESTED) throw new RangeError("too many stores read in a read");
        const outer = this.thrown;
        this.thrown = null;
        this.nested++;
        try {
            const got = this.calls[name](...given);
            if (got) return got;
            throw this.thrown ?? new CatervaError(this.text(this.calls.error_message()),
                                                  this.text(this.calls.error_status()));
        } finally {
            this.nested--;
            this.thrown = outer;
        }
    }

    allocate(size) {
        const at = size < 2 ** 32 ? this.calls.allocate(size) : 0;
        if (at === 0) throw new RangeError(`no memory: ${size} bytes`);
        return at;
    }

    // Memory for the call.
    with(size, call) {
        const at = this.allocate(size);
        try {
            return call(at);
        } finally {
            this.calls.release(at);
        }
    }
}

class Caterva {
    #host;
    constructor(host) {
        this.#host = host;
    }

    /** Opens a whole frame in memory. */
    open(given) {
        const host = this.#host;
        const frame = bytesOf(given, "the frame");
        const at = host.allocate(frame.length);
        let array;
        try {
            host.bytes(at, frame.length).set(frame);
            array = host.run("open_frame", at, frame.length);
        } catch (error) {
            host.calls.release(at);
            throw error;
        }
        return new CatervaArray(host, array, at);
    }

    /** Opens a frame in a store; see the beginning of this file. */
    openStore(store) {
        const host = this.#host;
        const number = host.next++;
        host.numbers.set(number, store);
        let array;
        try {
            array = host.run("open_store", number);
        } catch (error) {
            host.numbers.delete(number);
            throw error;
        }
        return new CatervaArray(host, array, 0);
    }
}

const MOST_DIMS = 16;

class CatervaArray {
    #host;
    #array;
    #frame;
    #busy = false;

    // Releases the array if it cannot be described.
    constructor(host, array, frame) {
        this.#host = host;
        this.#array = array;
        this.#frame = frame;
        try {
            this.#describe();
        } catch (error) {
            this.close();
            throw error;
        }
    }

    #describe() {
        const host = this.#host;
        const SHAPE = 16; // bytes of the other three
        host.with(SHAPE + 8 * MOST_DIMS, (at) => {
            const info = host.run("describe", this.#array, at, at + SHAPE, at + 4, at + 8);
            const view = host.view();
            this.shape = Array.from({ length: view.getInt32(at, true) }, (_, d) =>
                Number(view.getBigInt64(at + SHAPE + 8 * d, true)));
            this.itemSize = view.getInt32(at + 4, true);
            this.dtype = host.text(view.getUint32(at + 8, true));
            host.calls.end_description(info);
        });
    }

    // Makes a call, during which the array's store may be read and must not use the array.
    #use(call) {
        if (this.#busy)
            throw new CatervaError("the array is busy: its own store uses it", "CATERVA_EBUSY");
        this.#busy = true;
        try {
            return call();
        } finally {
            this.#busy = false;
        }
    }

    /** Reads the box [start, stop), which is the whole array by default: bytes in C order. */
    read(start = this.shape.map(() => 0), stop = this.shape) {
        const host = this.#host;
        if (start.length !== this.shape.length || stop.length !== this.shape.length)
            throw new RangeError(`the array has ${this.shape.length} dimensions`);
        for (const number of [...start, ...stop])
            if (!Number.isSafeInteger(number))
                throw new RangeError(`${number} is not an integer below 2^53`);
        const size = start.reduce((n, s, d) => n * Math.max(stop[d] - s, 0), this.itemSize);
        if (size >= 2 ** 31) throw new RangeError(`${size} bytes are too many to read at once`);
        return host.with(16 * MOST_DIMS + size, (at) => {
            const corners = new BigInt64Array(host.memory.buffer, at, 2 * MOST_DIMS);
            start.forEach((s, d) => (corners[d] = BigInt(s)));
            stop.forEach((s, d) => (corners[MOST_DIMS + d] = BigInt(s)));
            const dst = at + 16 * MOST_DIMS;
            this.#use(() => host.run("read", this.#array, at, at + 8 * MOST_DIMS, dst, size));
            return host.bytes(dst, size).slice();
        });
    }

    /** The value of an attribute, as the msgpack that is stored. */
    attribute(name) {
        const host = this.#host;
        const utf8 = new TextEncoder().encode(name);
        if (utf8.includes(0)) throw new RangeError("an attribute's name cannot have a zero");
        return host.with(8 + utf8.length + 1, (at) => {
            host.bytes(at + 8, utf8.length + 1).set([...utf8, 0]);
            this.#use(() => host.run("attribute", this.#array, at + 8, at, at + 4));
            const bytes = host.view().getUint32(at, true);
            const value = host.bytes(bytes, host.view().getUint32(at + 4, true)).slice();
            host.calls.free_bytes(bytes);
            return value;
        });
    }

    close() {
        if (this.#array === 0) return;
        this.#use(() => this.#host.calls.close(this.#array));
        if (this.#frame) this.#host.calls.release(this.#frame);
        this.#array = this.#frame = 0;
    }
}
