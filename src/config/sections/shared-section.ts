import { z } from "zod";
import { duration, flag, optional, optionalMapping, text } from "../fields.ts";
import { caFile } from "./users-section.ts";
import { SHARED_PARTS } from "../../core/shared-parts.ts";

/** The section `shared`: the state that replicas share, and the server through which they share it. */
export const shared = { schema: sharedSection, atStart: [{ key: "shared" }] };

function sharedSection() {
  return z
    .strictObject({
      kind: z.literal("redis").describe("Redis 7.0 or newer, or Valkey"),
      url: text()
        .refine(
          isStateUrl,
          "must be a URL such as rediss://user:password@host:6379/0, without a query",
        )
        .describe("URL, with credentials if needed; redis:// is clear text"),
      password: optional("Password, instead of one in the URL", text().meta({ writeOnly: true })),
      caFile: caFile(),
      ...servers(),
      prefix: z
        .string()
        .regex(/^[\w.:/-]{1,100}$/, "must be letters, digits and . : / - _")
        .default("sallyport:")
        .describe("Prefix of all keys; replicas with the same one share"),
      timeout: duration({ min: 1, max: 5_000 })
        .prefault("50ms")
        .describe("Maximum wait of a request"),
      share: z
        .array(z.enum(SHARED_PARTS))
        .min(1, "must name something to share")
        .default([...SHARED_PARTS])
        .describe("What the replicas share"),
    })
    .refine(
      ({ url, password }) =>
        password === undefined || !URL.canParse(url) || new URL(url).password === "",
      { path: ["password"], message: "is in the URL, too: keep one of the two" },
    )
    .refine(({ sentinel, cluster }) => sentinel === undefined || !cluster, {
      path: ["cluster"],
      message: "cannot be combined with sentinel: keep one of the two",
    })
    .refine(({ nodes, sentinel, cluster }) => nodes.length === 0 || cluster || sentinel, {
      path: ["nodes"],
      message: "is for sentinels and clusters: set sentinel or cluster, too",
    })
    .refine(
      ({ url, cluster }) => !cluster || !URL.canParse(url) || /^\/?0?$/.test(new URL(url).pathname),
      { path: ["url"], message: "names a database, but a cluster has only database 0" },
    )
    .describe("State that replicas share through a server; without it, each counts for itself");
}

/** The keys for several servers: how to find the primary, or the node that has a key. */
function servers() {
  return {
    sentinel: optionalMapping("`url` and `nodes` are sentinels", {
      name: z
        .string()
        .regex(/^[\w.-]{1,100}$/, "must be letters, digits and . - _")
        .describe("Name of the primary"),
      username: optional("User for the sentinels", text()),
      password: optional("Password for the sentinels", text().meta({ writeOnly: true })),
    }),
    cluster: flag(false).describe("`url` and `nodes` are nodes of a cluster"),
    nodes: z
      .array(z.string().regex(/^(?:\[[\da-fA-F:.]+\]|[\w.-]{1,255}):\d{1,5}$/, "must be host:port"))
      .max(100)
      .default([])
      .describe("Further sentinels or nodes, `host:port`"),
  };
}

function isStateUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, hostname, pathname, search, hash } = new URL(value);
  const address = /^rediss?:$/.test(protocol) && hostname !== "" && /^\/?\d{0,2}$/.test(pathname);
  return address && search === "" && hash === "";
}
