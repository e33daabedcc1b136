import { VERSION_FORM } from "../../core/version-source.ts";
import type { YamlPath } from "../../lib/files/positioned-yaml.ts";
import { withSuggestion } from "../path-problem.ts";
import type { PathProblem } from "../path-problem.ts";
import { headerProblems } from "./header-rules.ts";
import { foldedName } from "../../lib/http/folded-name.ts";
import { IDENTITY_PRESETS } from "../../upstream/headers/identity-headers.ts";
import { authorizationProblems } from "./authorization-rules.ts";
import { assertionProblems } from "./assertion-rules.ts";
import { logProblems } from "./log-rules.ts";
import { probeProblems } from "./probe-rules.ts";
import { protocolProblems } from "./protocol-rules.ts";
import { routeProblems } from "./route-rules.ts";
import { targetProblems } from "./target-rules.ts";
import { underscoreProblems } from "./underscore-rules.ts";
import { listAt, mappingAt, textAt } from "../schema/untyped.ts";

/**
 * Checks rules that involve several keys: references, duplicates, and keys that exclude each other. Works on the
 * unvalidated value, so that these problems are reported together with those of the schema.
 */
export function ruleProblems(
  written: unknown,
  env: Readonly<Record<string, string | undefined>>,
): PathProblem[] {
  const configuration = mappingAt(written);
  const upstreams = Object.keys(mappingAt(configuration["upstreams"]));
  return [
    ...listenerProblems(configuration),
    ...proxyProblems(configuration["server"]),
    ...probeProblems(configuration["admin"], upstreams),
    ...duplicates(
      configuration["users"],
      "path",
      ["users"],
      "is the same file as that of another entry",
    ),
    ...issuerProblems(configuration["tokens"]),
    ...authorizationProblems(
      configuration["authorization"],
      configuration["routes"],
      configuration["tokens"],
    ),
    ...assertionProblems(configuration["tokens"], configuration["routes"]),
    ...versionProblems(configuration["version"], upstreams, env),
    ...identityProblems(configuration["identity"]),
    ...routeProblems(configuration["routes"], {
      upstreams,
      networks: Object.keys(mappingAt(configuration["networks"])),
    }),
    ...headerProblems(configuration["routes"], configuration["identity"]),
    ...underscoreProblems(configuration["server"], configuration["routes"]),
    ...logProblems(configuration["log"], configuration["routes"]),
    ...requiredIssuerProblems(configuration),
    ...certificateProblems(configuration["upstreams"]),
    ...protocolProblems(configuration["upstreams"]),
    ...targetProblems(configuration["upstreams"]),
  ];
}

function proxyProblems(server: unknown): PathProblem[] {
  const { proxyProtocol, trustedProxies } = mappingAt(server);
  if (proxyProtocol !== "accept" || listAt(trustedProxies).length > 0) return [];
  const message = "must not be accept without server.trustedProxies, which name the clients";
  return [{ path: ["server", "proxyProtocol"], message }];
}

/** Reports two listeners on one port: with SO_REUSEPORT, both would start and share the connections. */
function listenerProblems(configuration: Readonly<Record<string, unknown>>): PathProblem[] {
  const [host, port] = hostAndPort(mappingAt(configuration["server"])["listen"] ?? "0.0.0.0:8443");
  const [adminHost, adminPort] = adminListen(configuration["admin"]);
  const everywhere = ["0.0.0.0", "[::]"];
  const shared = host === adminHost || everywhere.includes(host) || everywhere.includes(adminHost);
  if (port === "" || port === "0" || port !== adminPort || !shared) return [];
  return [{ path: ["admin", "listen"], message: "uses the port of server.listen: choose another" }];
}

function adminListen(admin: unknown): [string, string] {
  return admin === "off" || admin === false
    ? ["", ""]
    : hostAndPort(mappingAt(admin)["listen"] ?? "0.0.0.0:9464");
}

function hostAndPort(listen: unknown): [string, string] {
  const [, host = "", port = ""] = /^(.*):(\d+)$/.exec(textAt(listen) ?? "") ?? [];
  return [host, port];
}

/** Reports every entry of a list whose text at `key` is that of an earlier entry. */
function duplicates(list: unknown, key: string, path: YamlPath, message: string): PathProblem[] {
  const seen = new Set<string>();
  return listAt(list).flatMap((entry, index) => {
    const text = textAt(mappingAt(entry)[key]);
    const known = text !== undefined && seen.has(text);
    if (text !== undefined) seen.add(text);
    return known ? [{ path: [...path, index, key], message }] : [];
  });
}

function issuerProblems(written: unknown): PathProblem[] {
  const tokens = mappingAt(written);
  const own = textAt(tokens["issuer"]) ?? "sallyport";
  const ownAgain = listAt(tokens["trusted"]).flatMap((entry, index) =>
    mappingAt(entry)["issuer"] === own
      ? [{ path: ["tokens", "trusted", index, "issuer"], message: "is Sallyport's own issuer" }]
      : [],
  );
  const path = ["tokens", "trusted"];
  return [...ownAgain, ...duplicates(tokens["trusted"], "issuer", path, "is listed twice")];
}

/** Reports issuers that a route requires although their tokens are not accepted. */
function requiredIssuerProblems(configuration: Readonly<Record<string, unknown>>): PathProblem[] {
  const tokens = mappingAt(configuration["tokens"]);
  const accepted = [
    textAt(tokens["issuer"]) ?? "sallyport",
    ...listAt(tokens["trusted"]).flatMap((entry) => textAt(mappingAt(entry)["issuer"]) ?? []),
  ];
  return listAt(configuration["routes"]).flatMap((route, index) =>
    listAt(mappingAt(mappingAt(route)["require"])["issuers"]).flatMap((written, at) => {
      const issuer = textAt(written);
      if (issuer === undefined || accepted.includes(issuer)) return [];
      const path = ["routes", index, "require", "issuers", at];
      const message =
        "is not an issuer whose tokens are accepted: see tokens.issuer and tokens.trusted";
      return [withSuggestion({ path, message }, issuer, accepted)];
    }),
  );
}

function versionProblems(
  written: unknown,
  upstreams: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
): PathProblem[] {
  const version = mappingAt(written);
  const problems: PathProblem[] = [];
  const variable = textAt(version["env"]);
  if (variable !== undefined) {
    const path = ["version", "env"];
    const value = env[variable];
    if (value === undefined) {
      problems.push({ path, message: "names an environment variable that is not set" });
    } else if (!VERSION_FORM.test(value)) {
      problems.push({
        path,
        message: "names an environment variable that is not major.minor.patch",
      });
    }
  }
  const upstream = textAt(version["upstream"]);
  if (upstream !== undefined && !upstreams.includes(upstream)) {
    const problem = {
      path: ["version", "upstream"],
      message: "names an upstream that does not exist",
    };
    problems.push(withSuggestion(problem, upstream, upstreams));
  }
  return problems;
}

/** Reports a header that would carry two values. `_` counts as `-`, since CGI backends do not distinguish them. */
function identityProblems(written: unknown): PathProblem[] {
  const identity = mappingAt(written);
  const preset = textAt(identity["headers"]) ?? "sallyport";
  const taken = isPreset(preset) ? Object.values<string>(IDENTITY_PRESETS[preset]) : [];
  const own = Object.entries(mappingAt(identity["headers"])).map(([key, value]) => ({
    path: ["identity", "headers", key],
    of: "value" as const,
    header: textAt(value) ?? "",
  }));
  const claims = Object.keys(mappingAt(identity["claims"])).map((header) => ({
    path: ["identity", "claims", header],
    of: "key" as const,
    header,
  }));
  const mapped = Object.hasOwn(identity, "headers") && own.length > 0;
  const seen = new Set(mapped ? [] : taken.map(foldedName));
  return [...own, ...claims].flatMap(({ path, of, header }) => {
    const name = foldedName(header);
    if (name === "") return [];
    if (seen.has(name)) return [{ path, of, message: "is the same header as another one here" }];
    seen.add(name);
    return [];
  });
}

function isPreset(name: string): name is keyof typeof IDENTITY_PRESETS {
  return Object.hasOwn(IDENTITY_PRESETS, name);
}

function certificateProblems(written: unknown): PathProblem[] {
  return Object.entries(mappingAt(written)).flatMap(([name, upstream]) => {
    const tls = mappingAt(mappingAt(upstream)["tls"]);
    if (Object.hasOwn(tls, "certFile") === Object.hasOwn(tls, "keyFile")) return [];
    const message = "needs certFile and keyFile together, or neither";
    return [{ path: ["upstreams", name, "tls"], of: "key" as const, message }];
  });
}
