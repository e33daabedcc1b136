import { codeOrMessage } from "../lib/error-code.ts";
import { type JwkSet, readJwkSet } from "./jwk-set.ts";
import type { KeySource } from "./key-set.ts";
import type { TrustedIssuer, TrustedKeysContext } from "./trusted-issuer.ts";

const TIMEOUT_MS = 5_000;
const LARGEST_BODY = 524_288;
const REFRESH_MS = 600_000;
const COOL_DOWN_MS = 30_000;

/**
 * The keys that an address gives. Asked at once, then every ten minutes; after a failure, and when a token names a key that
 * is not known, again after 30 seconds at the earliest. While the address gives nothing, the last good keys serve on.
 * @param timing for tests: the milliseconds between two requests.
 */
export function openTrustedKeyAddress(
  url: string,
  { issuer, algorithms }: TrustedIssuer,
  { clock, log, changed }: TrustedKeysContext,
  timing = { refreshMs: REFRESH_MS, coolDownMs: COOL_DOWN_MS },
): KeySource {
  const closing = new AbortController();
  let known: JwkSet | undefined;
  let asked = -Infinity;
  let asking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  async function ask(): Promise<void> {
    let next = timing.coolDownMs;
    try {
      const signal = AbortSignal.any([closing.signal, AbortSignal.timeout(TIMEOUT_MS)]);
      accept(readJwkSet(await fetchText(url, signal), algorithms));
      next = timing.refreshMs;
    } catch (error) {
      if (closing.signal.aborted) return;
      log.warn("The keys of a trusted issuer could not be fetched", {
        issuer,
        reason: codeOrMessage(error),
        keys: known?.keys.length ?? 0,
      });
    }
    clearTimeout(timer);
    if (!closing.signal.aborted) timer = setTimeout(() => void begin(), next).unref();
  }

  function accept(latest: JwkSet): void {
    if (latest.fingerprint === known?.fingerprint) return;
    known = latest;
    log.info("Keys of a trusted issuer were loaded", { issuer, keys: latest.keys.length });
    if (latest.ignored.length > 0) {
      log.warn("Some keys of a trusted issuer were left out", { issuer, reasons: latest.ignored });
    }
    changed();
  }

  function begin(): Promise<void> {
    if (asking !== undefined) return asking;
    asked = clock.monotonic();
    asking = ask().finally(() => {
      asking = undefined;
    });
    return asking;
  }

  void begin();
  return {
    current: () => known?.keys,
    refresh() {
      const cooling = asking === undefined && clock.monotonic() - asked < timing.coolDownMs;
      return cooling ? Promise.resolve() : begin();
    },
    close() {
      closing.abort();
      clearTimeout(timer);
    },
  };
}

/** The body of a 200. Redirects are refused: they could lead from a trusted address to another. Throws on anything else. */
async function fetchText(url: string, signal: AbortSignal): Promise<string> {
  const response = await fetch(url, {
    headers: { accept: "application/jwk-set+json, application/json" },
    redirect: "error",
    signal,
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`status ${response.status}`);
  }
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of response.body ?? []) {
    length += chunk.length;
    if (length > LARGEST_BODY) throw new Error(`larger than ${LARGEST_BODY} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}
