import { expect, test } from "vitest";
import { command } from "../cli/command.ts";
import { directoryWith, namedFiles } from "../docs/checked-configuration.ts";

const BASE = {
  server: { tls: { certFile: "tls.crt", keyFile: "tls.key" } },
  upstreams: { app: { targets: ["http://127.0.0.1:8080"] } },
};
const SEARCH = { base: "dc=example", filter: "(uid={username})" };
const QUERY = "SELECT password_hash FROM users WHERE name = $1";
const POSTGRES = { kind: "postgres", query: QUERY, tls: false };

async function checked(config: object): Promise<string> {
  const directory = await directoryWith({
    ...(await namedFiles()),
    "config.yaml": JSON.stringify({ ...BASE, ...config }),
  });
  const { code, out, err } = await command(["check", "--config", `${directory}/config.yaml`]);
  expect({ code, err }).toMatchObject({ code: 0 });
  return out + err;
}

const STORES: readonly (readonly [string, (host: string) => object])[] = [
  ["ldap", (host) => ({ kind: "ldap", url: `ldap://${host}`, startTls: false, search: SEARCH })],
  ["postgres", (host) => ({ ...POSTGRES, url: `postgres://a:b@${host}/shop` })],
  ["http", (host) => ({ kind: "http", url: `http://${host}/login` })],
];

test.each(STORES)("check warns of a remote %s store without TLS", async (kind, entry) => {
  const told = await checked({ users: [entry("store.example.com")] });
  expect(told).toContain(`the connection to the ${kind} store is clear text`);
  for (const here of ["127.0.0.1", "localhost", "[::1]"]) {
    expect(await checked({ users: [entry(here)] })).not.toContain("clear text");
  }
});

test("check warns of a table of API keys without TLS", async () => {
  const users = [{ kind: "file", path: "users.yaml" }];
  const at = (host: string) => {
    const url = `postgres://a:b@${host}/shop`;
    return checked({ users, apiKeys: [{ kind: "postgres", url, tls: false }] });
  };
  expect(await at("db.example.com")).toContain("apiKeys: the connection to the postgres store is");
  expect(await at("127.0.0.1")).not.toContain("clear text");
});

test("check warns of a remote state server without TLS, and of an unreadable CA file", async () => {
  const users = [{ kind: "file", path: "users.yaml" }];
  const at = (url: string) => checked({ users, shared: { kind: "redis", url } });
  expect(await at("redis://state.example.com")).toContain("shared: the connection is clear text");
  expect(await at("redis://:secret@127.0.0.1:6379/1")).not.toContain("clear text");
  expect(await at("rediss://state.example.com")).not.toContain("clear text");
});

test.each([
  ["http://state.example.com", "must be a URL"],
  ["redis://state.example.com/x", "must be a URL"],
  ["redis://state.example.com?db=1", "must be a URL"],
])("the address %s of a state server is refused", async (url, problem) => {
  const directory = await directoryWith({
    ...(await namedFiles()),
    "config.yaml": JSON.stringify({ ...BASE, shared: { kind: "redis", url } }),
  });
  const { code, err } = await command(["check", "--config", `${directory}/config.yaml`]);
  expect(code).toBe(78);
  expect(err).toContain(problem);
});
