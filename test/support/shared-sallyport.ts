import { afterAll, beforeAll } from "vitest";
import { type Sallyport, startSallyport, type SallyportOptions } from "./sallyport.ts";

/** What a test needs of the Sallyport that all tests of its file share. */
interface Part {
  /** Of the upstream that has the name of the part. */
  readonly upstream: object;
  /** Further upstreams. */
  readonly upstreams?: object;
  /** Laid over its route: all below `/NAME/`, to its upstream. */
  readonly route?: object;
}

/**
 * One Sallyport for all tests of the file or the `describe` that this is called in: a start costs more than most of them.
 * Each test adds what it needs, an upstream and a route below a path of its own, before the start.
 */
export function useSharedSallyport(options: Omit<SallyportOptions, "target"> = {}) {
  const stack = new AsyncDisposableStack();
  const parts: (() => Promise<Part>)[] = [];
  let gate: Sallyport;

  beforeAll(async () => {
    const made = await Promise.all(parts.map((make) => make()));
    const upstreams = made.map(({ upstream, upstreams: more }, at) => ({
      ...{ [nameOf(at)]: upstream },
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

  /** To be called before the start. @returns what `make` has made, its name, and the paths of its route; inside a test. */
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
