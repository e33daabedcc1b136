import { afterAll, beforeAll, beforeEach } from "vitest";
import { startNaiveProxy, type NaiveProxy } from "./naive.ts";
import { checkProcessSallyport, processSallyport } from "./process-sallyport.ts";
import { startRawBackend, type RawBackend, type RawScript } from "./raw-backend.ts";
import { startSallyport, type Sallyport, type SallyportOptions } from "./sallyport.ts";

interface Target extends AsyncDisposable {
  readonly url: string;
}

interface Standing<G, B> {
  readonly gate: G;
  readonly backend: B;
}

/**
 * Starts Sallyport in front of a raw backend for all tests of the enclosing `describe`. Without options, it is the one
 * that all files of this process share; a file whose backend breaks connections names a configuration, if only `{}`.
 */
export function useSallyport(
  script?: RawScript,
  options: Omit<SallyportOptions, "target"> = {},
): () => Standing<Sallyport, RawBackend> {
  const { withoutToken: _unneeded, ...particular } = options;
  if (Object.keys(particular).length === 0) return useProcessSallyport(script);
  const standing = use(
    () => startRawBackend(script),
    (target) => startSallyport({ target, ...options }),
  );
  beforeEach(() => standing().backend.forget());
  return standing;
}

function useProcessSallyport(script?: RawScript): () => Standing<Sallyport, RawBackend> {
  let standing: Standing<Sallyport, RawBackend> | undefined;
  beforeAll(async () => void (standing = await processSallyport(script)));
  afterAll(checkProcessSallyport);
  beforeEach(() => standing?.backend.forget());
  return () => standing ?? notYet();
}

/** Starts an unmodified http-proxy-3 in front of a raw backend for all tests of the enclosing `describe`. */
export function useNaiveProxy(
  script?: RawScript,
  options: Record<string, unknown> = {},
): () => Standing<NaiveProxy, RawBackend> {
  const standing = use(
    () => startRawBackend(script),
    (target) => startNaiveProxy(target, options),
  );
  beforeEach(() => standing().backend.forget());
  return standing;
}

/** Starts a backend and the gate in front of it before all tests, and closes them after the last. */
export function use<G extends AsyncDisposable, B extends Target>(
  startBackend: () => Promise<B>,
  startGate: (target: string) => Promise<G>,
): () => Standing<G, B> {
  const stack = new AsyncDisposableStack();
  let standing: Standing<G, B> | undefined;
  beforeAll(async () => {
    const backend = stack.use(await startBackend());
    standing = { backend, gate: stack.use(await startGate(backend.url)) };
  });
  afterAll(() => stack.disposeAsync());
  return () => standing ?? notYet();
}

function notYet(): never {
  throw new Error("only inside a test");
}
