import { VERSION_FORM } from "../core/version-source.ts";
import type { YamlPath } from "../lib/positioned-yaml.ts";
import { suggesting } from "./fault.ts";
import type { Fault } from "./fault.ts";
import { probeFaults } from "./probe-rules.ts";
import { routeFaults } from "./route-rules.ts";
import { listAt, mappingAt, textAt } from "./untyped.ts";

/**
 * What concerns several keys at once: references, duplicates, keys that exclude each other. Looks at the configuration
 * as it was written, since it has to speak up beside other faults too.
 */
export function ruleFaults(
  written: unknown,
  env: Readonly<Record<string, string | undefined>>,
): Fault[] {
  const configuration = mappingAt(written);
  const upstreams = Object.keys(mappingAt(configuration["upstreams"]));
  return [
    ...listenerFaults(configuration),
    ...probeFaults(configuration["admin"], upstreams),
    ...duplicates(
      configuration["users"],
      "path",
      ["users"],
      "is the same file as that of another entry",
    ),
    ...issuerFaults(configuration["tokens"]),
    ...versionFaults(configuration["version"], upstreams, env),
    ...identityFaults(configuration["identity"]),
    ...routeFaults(configuration["routes"], upstreams),
    ...certificateFaults(configuration["upstreams"]),
  ];
}

/** With SO_REUSEPORT two listeners on one port do not collide: they would share its connections. */
function listenerFaults(configuration: Readonly<Record<string, unknown>>): Fault[] {
  const [host, port] = hostAndPort(mappingAt(configuration["server"])["listen"] ?? "0.0.0.0:8443");
  const [adminHost, adminPort] = adminListen(configuration["admin"]);
  const everywhere = ["0.0.0.0", "[::]"];
  const shared = host === adminHost || everywhere.includes(host) || everywhere.includes(adminHost);
  if (port === "" || port === "0" || port !== adminPort || !shared) return [];
  return [
    { path: ["admin", "listen"], message: "takes the port of server.listen: choose another" },
  ];
}

function adminListen(admin: unknown): [string, string] {
  return admin === "off" ? ["", ""] : hostAndPort(mappingAt(admin)["listen"] ?? "0.0.0.0:9464");
}

function hostAndPort(listen: unknown): [string, string] {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(textAt(listen) ?? "") ?? [];
  return [host, port];
}

/** Every entry of a list whose text under `key` was there before. */
function duplicates(list: unknown, key: string, path: YamlPath, message: string): Fault[] {
  const seen = new Set<string>();
  return listAt(list).flatMap((entry, index) => {
    const text = textAt(mappingAt(entry)[key]);
    const known = text !== undefined && seen.has(text);
    if (text !== undefined) seen.add(text);
    return known ? [{ path: [...path, index, key], message }] : [];
  });
}

function issuerFaults(written: unknown): Fault[] {
  const tokens = mappingAt(written);
  const own = textAt(tokens["issuer"]) ?? "sallyport";
  const ownAgain = listAt(tokens["trusted"]).flatMap((entry, index) =>
    mappingAt(entry)["issuer"] === own
      ? [{ path: ["tokens", "trusted", index, "issuer"], message: "is Sallyport's own issuer" }]
      : [],
  );
  const path = ["tokens", "trusted"];
  return [...ownAgain, ...duplicates(tokens["trusted"], "issuer", path, "is there twice")];
}

function versionFaults(
  written: unknown,
  upstreams: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): Fault[] {
  const version = mappingAt(written);
  const faults: Fault[] = [];
  const variable = textAt(version["env"]);
  if (variable !== undefined) {
    const path = ["version", "env"];
    const value = env[variable];
    if (value === undefined) {
      faults.push({ path, message: "names an environment variable that is not set" });
    } else if (!VERSION_FORM.test(value)) {
      faults.push({ path, message: "names an environment variable that is not major.minor.patch" });
    }
  }
  const upstream = textAt(version["upstream"]);
  if (upstream !== undefined && !upstreams.includes(upstream)) {
    const fault = {
      path: ["version", "upstream"],
      message: "names an upstream that does not exist",
    };
    faults.push(suggesting(fault, upstream, upstreams));
  }
  return faults;
}

function identityFaults(written: unknown): Fault[] {
  const seen = new Set<string>();
  return Object.entries(mappingAt(mappingAt(written)["headers"])).flatMap(([key, value]) => {
    const header = (textAt(value) ?? "").toLowerCase().replaceAll("_", "-");
    if (header === "") return [];
    if (!seen.has(header)) {
      seen.add(header);
      return [];
    }
    return [
      { path: ["identity", "headers", key], message: "is the same header as another one here" },
    ];
  });
}

function certificateFaults(written: unknown): Fault[] {
  return Object.entries(mappingAt(written)).flatMap(([name, upstream]) => {
    const tls = mappingAt(mappingAt(upstream)["tls"]);
    if (Object.hasOwn(tls, "certFile") === Object.hasOwn(tls, "keyFile")) return [];
    const message = "needs certFile and keyFile together, or neither";
    return [{ path: ["upstreams", name, "tls"], of: "key" as const, message }];
  });
}
