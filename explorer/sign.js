// Master-key signatures: HMAC-SHA256, by WebCrypto where the browser lets us have it (https and
// this machine), else by our own few lines. The tests compare the two.

const utf8 = new TextEncoder();

export function decodeBase64(text) {
  return Uint8Array.from(atob(text.trim()), (c) => c.charCodeAt(0));
}
export function encodeBase64(bytes) {
  return btoa(String.fromCharCode(...bytes));
}

/** Makes `sign(text)`, which promises the base64 of the HMAC. Throws when the key is not base64. */
export function signer(key, subtle = globalThis.crypto?.subtle) {
  const secret = decodeBase64(key);
  if (!secret.length) throw new Error("The key is empty.");
  if (!subtle) return async (text) => encodeBase64(hmac(secret, utf8.encode(text)));
  const imported = subtle.importKey("raw", secret, { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return async (text) =>
    encodeBase64(new Uint8Array(await subtle.sign("HMAC", await imported, utf8.encode(text))));
}

// ── SHA-256 (FIPS 180-4) and HMAC (RFC 2104) ────────────────────────────────────────────────────

const primes = [];
for (let n = 2; primes.length < 64; n++) if (primes.every((p) => n % p)) primes.push(n);
const fraction = (x) => ((x - Math.floor(x)) * 2 ** 32) >>> 0;
const ROUNDS = Uint32Array.from(primes, (p) => fraction(Math.cbrt(p)));
const START = Uint32Array.from(primes.slice(0, 8), (p) => fraction(Math.sqrt(p)));

const rotate = (x, n) => (x >>> n) | (x << (32 - n));

export function sha256(bytes) {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(bytes.length / 2 ** 29));
  view.setUint32(padded.length - 4, bytes.length << 3);
  const state = Uint32Array.from(START);
  const w = new Uint32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i++) w[i] = view.getUint32(block + 4 * i);
    for (let i = 16; i < 64; i++) {
      const s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >>> 3);
      const s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >>> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + ROUNDS[i] + w[i]) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => { state[i] += x; });
  }
  const out = new DataView(new ArrayBuffer(32));
  state.forEach((x, i) => out.setUint32(4 * i, x));
  return new Uint8Array(out.buffer);
}

export function hmac(key, message) {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const keyed = (pad, bytes) => {
    const joined = new Uint8Array(64 + bytes.length);
    joined.set(block.map((x) => x ^ pad));
    joined.set(bytes, 64);
    return sha256(joined);
  };
  return keyed(0x5c, keyed(0x36, message));
}
