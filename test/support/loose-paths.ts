/** Routes with `paths` other than the strict default, and a function that sends requests to them. */
import { useSallyport } from "./pair.ts";
import { exchange, request } from "./raw-client.ts";

export const ROUTES = [
  { name: "public", path: "/public/", auth: "none", paths: "encoded", upstream: "app" },
  { name: "sent", path: "/sent/", auth: "none", paths: "asSent", upstream: "app" },
  { name: "inner", path: "/public/admin", upstream: "app" },
  { name: "sent-inner", path: "/sent/admin", upstream: "app" },
  { name: "all", path: "/", upstream: "app" },
];

/** The status of the response, and the target that the backend received, if any. */
interface Sent {
  readonly status: number;
  readonly got: string | undefined;
}

/**
 * Starts Sallyport with these routes for all tests of the enclosing `describe`. @returns a function that sends a GET.
 */
export function useLoosePaths(): (path: string) => Promise<Sent> {
  const standing = useSallyport(undefined, { config: { routes: ROUTES } });
  return async (path) => {
    const { gate, backend } = standing();
    backend.forget();
    const { last } = await exchange(gate, request([`GET ${path} HTTP/1.1`, "Host: localhost"]));
    const [first, ...more] = backend.seen();
    if (more.length > 0) throw new Error(`${path} reached the backend more than once`);
    return { status: last.status, got: first?.replace(/^GET /, "") };
  };
}
