/** API keys in a table of PostgreSQL. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { newApiKey } from "../../src/tokens/api-keys/api-key-file.ts";
import { command } from "../cli/command.ts";
import { ask } from "../support/ask.ts";
import { testCertificates } from "../support/certificates.ts";
import { editConfiguration } from "../support/edits.ts";
import { startSallyport } from "../support/sallyport.ts";
import { scrape } from "../support/scrape.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";
import { type KeySource, keyStoreContract } from "../tokens/key-store-contract.ts";
import { startRelay } from "./relay.ts";
import { postgresMissing, type PostgresServer, startPostgres } from "./postgres-server.ts";

const TABLE = `CREATE TABLE api_keys (name text PRIMARY KEY, hash text NOT NULL, subject text, groups text[],
  scopes text[], expires timestamptz, disabled boolean, created timestamptz)`;

const ci = newApiKey("ci");

describe.skipIf(postgresMissing !== undefined)(`PostgreSQL ${postgresMissing ?? ""}`, () => {
  let server: PostgresServer;
  let directory: TemporaryDirectory;
  beforeAll(async () => {
    directory = await temporaryDirectory();
    await directory.write("ca.crt", (await testCertificates()).ca);
    server = await startPostgres();
    await server.query(TABLE);
    await server.query("GRANT SELECT ON api_keys TO sallyport");
  }, 60_000);
  afterAll(async () => {
    await server[Symbol.asyncDispose]();
    await directory.close();
  });

  const entry = (more: object = {}) => ({
    kind: "postgres",
    url: server.url,
    caFile: join(directory.path, "ca.crt"),
    timeout: "1s",
    ...more,
  });
  const hold: KeySource["hold"] = async (keys) => {
    await server.start();
    const rows = Object.entries(keys).map(([name, columns]) => ({ name, ...columns }));
    await server.query(`DO $do$ BEGIN
      DELETE FROM api_keys;
      INSERT INTO api_keys SELECT * FROM jsonb_populate_recordset(NULL::api_keys, $json$${JSON.stringify(rows)}$json$);
    END $do$`);
  };
  const source = async (): Promise<KeySource> => ({
    entry: entry(),
    hold,
    fail: () => server.kill(),
    async [Symbol.asyncDispose]() {},
  });

  describe.each([1, 2])("with %i workers", (workers) => {
    keyStoreContract({
      workers,
      source,
      complaint: {
        msg: "API keys cannot be read, the old ones stay",
        metric: 'sallyport_api_key_store_readable{store="postgres"}',
      },
    });
  });

  const start = async (apiKeys: object[], workers = 1) => {
    const gate = await startSallyport({
      withoutToken: true,
      target: "http://127.0.0.1:9",
      config: {
        apiKeys,
        server: { workers },
        routes: [{ name: "keyed", path: "/", upstream: "app", tokenFrom: [{ apiKey: "X-Key" }] }],
      },
    });
    onTestFinished(() => gate.close());
    const get = async (key: string) =>
      (await ask(gate, "/x", { headers: { "x-key": key } })).status;
    return { gate, get };
  };
  /** What a caller gets who is let through: there is no backend. */
  const THROUGH = 502;

  test.each([1, 2])(
    "a start without the database serves, and says 503 to keys until it was read (%i workers)",
    { timeout: 60_000 },
    async (workers) => {
      await hold({ ci: { hash: ci.hash } });
      await server.kill();
      const { gate, get } = await start([entry()], workers);
      expect([await get(ci.key), await get(newApiKey("nobody").key)]).toEqual([503, 503]);
      expect(await get("nonsense")).toBe(401);
      expect(gate.log().filter(({ msg }) => String(msg).startsWith("API keys"))).toHaveLength(1);
      const page = await ask({ port: gate.adminPort }, "/-/status");
      const row = { kind: "API keys", name: "postgres", state: "bad", words: "never read" };
      expect(JSON.parse(page.body).dependencies).toContainEqual({
        ...row,
        since: expect.any(Number),
      });
      await server.start();
      await until(async () => (await get(ci.key)) === THROUGH);
      expect(await get(newApiKey("nobody").key)).toBe(401);
      expect((await scrape(gate)).value('sallyport_api_keys{store="postgres"}')).toBe(1);
      expect(JSON.stringify(gate.log())).not.toMatch(/of-the-test|sha256/);
    },
  );

  test("a server that hangs keeps the keys, and delays nobody", { timeout: 60_000 }, async () => {
    await hold({ ci: { hash: ci.hash } });
    const { gate, get } = await start([entry()]);
    server.signal("SIGSTOP");
    const readable = async () =>
      (await scrape(gate)).value('sallyport_api_key_store_readable{store="postgres"}');
    await until(async () => (await readable()) === 0);
    const began = performance.now();
    expect(await get(ci.key)).toBe(THROUGH);
    expect(performance.now() - began).toBeLessThan(500);
    server.signal("SIGCONT");
    await hold({});
    await until(async () => (await get(ci.key)) === 401);
  });

  test("a wrong row is not read again and again", { timeout: 60_000 }, async () => {
    await hold({ ci: { hash: ci.hash } });
    await using relay = await startRelay(Number(new URL(server.url).port));
    const url = server.url.replace(/:\d+\//, `:${relay.port}/`);
    const { gate, get } = await start([entry({ url })]);
    const many = "SELECT 'k' || i, 'nonsense' FROM generate_series(1, 5000) AS i";
    await server.query(`INSERT INTO api_keys (name, hash) ${many}`);
    const readable = async () =>
      (await scrape(gate)).value('sallyport_api_key_store_readable{store="postgres"}');
    await until(async () => (await readable()) === 0);
    const { received } = relay;
    expect(received).toBeGreaterThan(100_000);
    await new Promise((resolve) => setTimeout(resolve, 1_600));
    expect(relay.received - received).toBeLessThan(50_000);
    expect([await readable(), await get(ci.key)]).toEqual([0, THROUGH]);
    // What was read before is right again, and then it changes.
    await server.query("DELETE FROM api_keys WHERE hash = 'nonsense'");
    await until(async () => (await readable()) === 1);
    await hold({});
    await until(async () => (await get(ci.key)) === 401);
  });

  test("a table that is locked gets no more and more questions", { timeout: 60_000 }, async () => {
    await hold({ ci: { hash: ci.hash } });
    const { get } = await start([entry()]);
    const locked = server.query("BEGIN; LOCK TABLE api_keys; SELECT pg_sleep(7); COMMIT");
    await new Promise((resolve) => setTimeout(resolve, 6_000));
    await server.query(`DO $do$ DECLARE asking int; BEGIN
      SELECT count(*) INTO asking FROM pg_stat_activity WHERE application_name = 'sallyport';
      IF asking > 2 THEN RAISE '% connections ask', asking; END IF;
    END $do$`);
    expect(await get(ci.key)).toBe(THROUGH);
    await locked;
    await hold({});
    await until(async () => (await get(ci.key)) === 401);
  });

  test.each([1, 2])(
    "a reload with a wrong password keeps the keys, and one with the right one follows again (%i workers)",
    { timeout: 60_000 },
    async (workers) => {
      await hold({ ci: { hash: ci.hash } });
      const { gate, get } = await start([entry()], workers);
      const readable = async () =>
        (await scrape(gate)).value('sallyport_api_key_store_readable{store="postgres"}');
      const reload = (url: string) =>
        editConfiguration(gate, (config) => {
          config["apiKeys"] = [entry({ url })];
        });
      await reload(server.url.replace("of-the-test", "hunter22"));
      await until(async () => (await readable()) === 0);
      expect(await get(ci.key)).toBe(THROUGH);
      // Another database is another table, whose keys are not known.
      await reload(`${server.url.replace("of-the-test", "hunter22")}2`);
      await until(async () => (await get(ci.key)) === 503);
      await reload(server.url);
      await until(async () => (await readable()) === 1);
      await hold({});
      await until(async () => (await get(ci.key)) === 401);
      expect(JSON.stringify(gate.log())).not.toMatch(/of-the-test|hunter22/);
    },
  );

  test("only a difference makes a reload, and a start reads the table once", async () => {
    await hold({ ci: { hash: ci.hash } });
    const { gate, get } = await start([entry()]);
    const readings = () => gate.log().filter(({ msg }) => msg === "API keys were read");
    await server.query("UPDATE api_keys SET subject = subject");
    await new Promise((resolve) => setTimeout(resolve, 1_600));
    expect(readings()).toEqual([expect.objectContaining({ store: "postgres", keys: 1 })]);
    await server.query("UPDATE api_keys SET disabled = true");
    await until(async () => (await get(ci.key)) === 401);
    await expect.poll(readings).toHaveLength(2);
  });

  test("a query of one's own names the columns; text with commas is a list", async () => {
    await server.query(
      "CREATE TABLE tokens (id text, digest bytea, roles text, until timestamptz)",
    );
    await server.query("GRANT SELECT ON tokens TO sallyport");
    const digest = ci.hash.replace("sha256:", "\\x");
    await server.query(
      `INSERT INTO tokens VALUES ('ci', '${digest}', 'a, b', '2100-01-01 00:00+02')`,
    );
    const query =
      "SELECT id AS name, 'sha256:' || encode(digest, 'hex') AS hash, roles AS groups, until AS expires FROM tokens;";
    const { get } = await start([entry({ query })]);
    expect(await get(ci.key)).toBe(THROUGH);
  });

  test("doctor reads the table, and says what is wrong with it", { timeout: 60_000 }, async () => {
    const doctor = async (more: object = {}) => {
      const apiKeys = [entry(more)];
      const config = {
        server: { tls: "off" },
        apiKeys,
        upstreams: { app: { targets: ["http://127.0.0.1:9"] } },
      };
      const file = await directory.write("config.yaml", JSON.stringify(config));
      expect((await command(["check", "--config", file])).code).toBe(0);
      return (await command(["doctor", "--config", file])).out;
    };
    await hold({ ci: { hash: ci.hash } });
    expect(await doctor()).toMatch(/postgres: 1 API keys, answers in \d+ ms/);
    await hold({ ci: { hash: ci.hash, expires: "infinity" } });
    expect(await doctor()).toMatch(/postgres: 1 API keys/);
    await hold({ ci: { hash: "nonsense" } });
    expect(await doctor()).toContain("the key ci: hash must be sha256:");
    expect(await doctor({ query: "SELECT name FROM nowhere" })).toContain("42P01");
    expect(await doctor({ query: "SELECT 1 AS one" })).toContain("in the column name");
    const misspelt = await doctor({ query: "SELECT name, hash, expires AS expire FROM api_keys" });
    expect(misspelt).toContain("hash must be");
    await hold({ ci: { hash: ci.hash, expires: "2100-01-01T00:00:00Z" } });
    const unknown = await doctor({ query: "SELECT name, hash, expires AS expire FROM api_keys" });
    expect(unknown).toContain("this key is unknown; known are");
    const url = server.url.replace("of-the-test", "hunter22");
    expect(await doctor({ url })).toMatch(/28P01[^]*`url` is wrong/);
  });
});
