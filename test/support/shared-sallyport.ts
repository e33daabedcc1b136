import { afterAll, beforeAll } from "vitest";
import { type Sallyport, startSallyport, type SallyportOptions } from "./sallyport.ts";

/** What a test adds to the Sallyport that all tests of its file share. */
interface Part {
  /** The upstream with the name of the part. */
  readonly upstream: object;
  /** Further upstreams. */
  readonly upstreams?: object;
  /** Merged over its route, which sends everything below `/NAME/` to its upstream. */
  readonly route?: object;
}

/**
 * Starts one Sallyport for all tests of the enclosing file or `describe`, because a start takes longer than most tests.
 * Before the start, each test adds what it needs: an upstream, and a route with its own path.
 */
export function useSharedSallyport(options: Omit<SallyportOptions, "target"> = {}) {
  const stack = new AsyncDisposableStack();
  const parts: (() => Promise<Part>)[] = [];
  let gate: Sallyport;

  beforeAll(async () => {
    const made = await Promise.all(parts.map((make) => make()));
    const upstreams = made.map(({ upstream, upstreams: more }, at) => ({
      [nameOf(at)]: upstream,
      ...more,
    }));
    const routes = made.map(({ route }, at) => {
      const name = nameOf(at);
      return { name, path: `/${name}/`, upstream: name, ...route };
    });
    const rest = { name: "rest", path: "/", upstream: "app" };
    const config = {
      ...options.config,
      upstreams: Object.assign({}, ...upstreams),
      routes: [...routes, rest],
    };
    gate = stack.use(await startSallyport({ target: "http://127.0.0.1:9", ...options, config }));
  });
  afterAll(() => stack.disposeAsync());

  /**
   * Adds a part; call it before the start. @returns a getter for the part, its name and its paths, for use in a test.
   */
  return function part<Made extends object>(
    make: (stack: AsyncDisposableStack, name: string) => Promise<Made & Part>,
  ) {
    const name = nameOf(parts.length);
    let all: (Made & Part) | undefined;
    parts.push(async () => (all = await make(stack, name)));
    return () => {
      if (all === undefined) throw new Error("only inside a test");
      return { ...all, gate, name, path: (rest: string): string => `/${name}${rest}` };
    };
  };
}

const nameOf = (at: number): string => `part${at}`;
