import { z } from "zod";
import { duration, flag, headerName, isHost, METHOD, optional, refuse } from "../fields.ts";

/** The section `cors`. */
const ORIGIN = /^(https?):\/\/(\*\.)?([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::(\d{1,5}))?$/;

const DEFAULT_PORTS: Readonly<Record<string, string>> = { http: "80", https: "443" };

/** Whether a text is an origin as browsers send it: in lower case, without a path, and without the default port. */
function isOrigin(text: string): boolean {
  const [, scheme = "", , host = "", port = "1"] = ORIGIN.exec(text) ?? [];
  if (host === "" || Number(port) < 1 || Number(port) > 65_535) return false;
  return (host.startsWith("[") || isHost(host)) && DEFAULT_PORTS[scheme] !== port;
}

const headerNames = () => z.array(headerName());

/** The section `cors`. */
export function corsSection() {
  return z
    .strictObject({
      origins: z
        .array(
          z
            .string()
            .refine(
              (text) => text === "*" || isOrigin(text),
              "must be an origin such as https://app.example.com, https://*.example.com, or *",
            ),
        )
        .min(1)
        .describe("Origins; https://*.example.com matches one label, * every origin"),
      methods: optional(
        "Methods; default: those of the routes",
        z.array(z.string().regex(METHOD, "must be a method in upper case")).min(1),
      ),
      headers: headerNames()
        .default(["Authorization", "Content-Type"])
        .describe("Headers that scripts may send"),
      exposeHeaders: headerNames()
        .default(["X-Request-Id"])
        .describe("Headers of the backend's responses that scripts may read"),
      credentials: flag(false).describe("Whether browsers send cookies and client certificates"),
      maxAge: duration()
        .prefault("10m")
        .describe("How long browsers cache the response to a preflight request"),
    })
    .superRefine(({ origins, headers, exposeHeaders, methods = [], credentials }, context) => {
      if (!credentials) return;
      for (const [key, list] of Object.entries({ origins, headers, exposeHeaders, methods })) {
        if (!list.includes("*")) continue;
        refuse(context, "must not contain * with credentials: name each one", { path: [key] });
      }
    });
}
