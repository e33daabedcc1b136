import type { AdminPage } from "../../core/admin-page.ts";
import type { Status } from "../../core/status.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";
import { restrictedPage, success } from "./page-parts.ts";

/** `GET /-/`: the status as a page for browsers. `GET /-/status`: the same as JSON. Concurrent requests share one reading. */
export function statusPages(collect: () => Promise<Status>): AdminPage[] {
  const flights = new SingleFlight<Status>();
  const read = (): Promise<Status> => flights.run("status", collect);
  return [
    restrictedPage("GET", "/-/", async () => {
      // Loaded on first use: most processes never show the page.
      const [{ renderStatus }, { CONTENT_SECURITY_POLICY }] = await Promise.all([
        import("./status/render-status.ts"),
        import("./status/style.ts"),
      ]);
      return {
        status: 200,
        type: "text/html; charset=utf-8",
        body: renderStatus(await read()),
        headers: {
          "Content-Security-Policy": CONTENT_SECURITY_POLICY,
          "Cross-Origin-Opener-Policy": "same-origin",
          "Cross-Origin-Resource-Policy": "same-origin",
          "Referrer-Policy": "no-referrer",
          "X-Frame-Options": "DENY",
        },
      };
    }),
    restrictedPage("GET", "/-/status", async () =>
      success("The status of the proxy", await read()),
    ),
  ];
}
