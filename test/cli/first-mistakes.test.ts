/** Common first mistakes, and the messages about them. */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { parseLoginRequest } from "../../src/server/endpoints/authenticate.ts";
import { load, problemsOf, SMALLEST } from "../config/configuration-file.ts";
import { compact } from "../support/compact-token.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { childCommand, command } from "./command.ts";

it("off without quotes, which Helm turns into false, means off", async () => {
  const { configuration } = await load(SMALLEST.replace("tls: off", "tls: false"));
  expect(configuration.server.tls).toEqual({ mode: "off" });
  const without = await load(`${SMALLEST}admin: false\n`);
  expect(without.configuration.admin).toBe("off");
  // Its port is then free.
  const port = SMALLEST.replace("tls: off", 'tls: false, listen: "127.0.0.1:9464"');
  expect(await problemsOf(`${port}admin: false\n`)).toEqual([]);
  expect(await problemsOf(SMALLEST.replace("tls: off", "tls: true"))).toHaveLength(1);
});

it.each(["[admin]", "admin"])(
  "groups written as %s get a message with the correct form",
  async (groups) => {
    const route = `{ name: r, upstream: app, require: { groups: ${groups} } }`;
    const [problem, ...more] = await problemsOf(`${SMALLEST}routes: [${route}]\n`);
    expect(more).toEqual([]);
    expect(problem?.message).toContain("write { any: [admin] }");
  },
);

async function users(content: string): Promise<string> {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const file = await directory.write(
    "config.yaml",
    `${SMALLEST}users: [{ kind: file, path: users.yaml }]\n`,
  );
  await writeFile(join(directory.path, "users.yaml"), content);
  return (await command(["check", "--config", file])).err;
}

it("an htpasswd file is recognized, and its hashes are not repeated", async () => {
  const told = await users("alice:$apr1$abc$SECRET\nbob:{SHA}SECRET=\n");
  expect(told).toMatch(/looks like an htpasswd file/);
  expect(told).not.toContain("SECRET");
});

it.each(["$apr1$a$b", "{SHA}abc=", "secret", "$6$a$b"])(
  "the message about a password %s says how to hash it",
  async (password) => {
    const told = await users(JSON.stringify({ users: { alice: { password } } }));
    expect(told).toContain("make one with `sallyport hash-password`");
  },
);

it("the message about a missing configuration names the directory searched", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const { code, err } = await childCommand(["check"], { cwd: directory.path });
  expect(code).toBe(78);
  expect(err).toContain(`in ${directory.path}; name it with --config or SALLYPORT_CONFIG`);
  expect(err).toContain("sallyport demo");
  const folder = await command(["check", "--config", directory.path]);
  expect([folder.code, folder.err.includes("a directory")]).toEqual([78, true]);
});

it("a token is decoded without a configuration, but not reported as accepted", async () => {
  const directory = await temporaryDirectory();
  onTestFinished(() => directory.close());
  const token = compact({ alg: "ES256" }, { sub: "alice" }, () => Buffer.from("no"));
  const ended = await childCommand(["token", "inspect", token], { cwd: directory.path });
  expect(ended.code).toBe(1);
  expect(ended.out).toContain("alice");
  expect(ended.out).toContain("not_verified");
  expect(ended.err).toContain("nothing was verified");
  // A configuration named explicitly must exist.
  const named = await command(["token", "inspect", token, "--config", "/none.yaml"]);
  expect(named.code).toBe(78);
});

it("the message about a field __proto__ in a login names it", () => {
  const body = '{"username": "a", "password": "b", "__proto__": {}}';
  expect(() => parseLoginRequest(Buffer.from(body))).toThrow(/field named __proto__/);
});
