import type { AdminPage, AdminResponse } from "../../core/admin-page.ts";
import type { Status } from "../../core/status.ts";
import { SingleFlight } from "../../lib/async/single-flight.ts";

/** `GET /-/`: the status as a page for browsers. `GET /-/status`: the same as JSON. Concurrent requests share one reading. */
export function statusPages(collect: () => Promise<Status>): AdminPage[] {
  const flights = new SingleFlight<Status>();
  const read = (): Promise<Status> => flights.run("status", collect);
  const page = { method: "GET", audience: "allowed" } as const;
  return [
    {
      ...page,
      path: "/-/",
      async answer(): Promise<AdminResponse> {
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
      },
    },
    {
      ...page,
      path: "/-/status",
      answer: async (): Promise<AdminResponse> => ({
        status: 200,
        json: { message: "The status of the proxy", success: true, ...(await read()) },
      }),
    },
  ];
}
