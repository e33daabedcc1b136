/** The RabbitMQ management API behind Sallyport. A name with slashes is one path segment, with `%2F`. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ask } from "../support/ask.ts";
import { freePort } from "../support/dead-ends.ts";
import { missing, startProgram } from "../support/program.ts";
import { startSallyport, type Sallyport } from "../support/sallyport.ts";
import { temporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const reason = missing("rabbitmqctl", "epmd");
/** Debian's script, without the wrapper that changes the user. */
const SERVER = "/usr/lib/rabbitmq/bin/rabbitmq-server";
const GUEST = `Basic ${Buffer.from("guest:guest").toString("base64")}`;

describe.skipIf(reason !== undefined)(`RabbitMQ ${reason ?? ""}`, () => {
  const stack = new AsyncDisposableStack();
  let gate: Sallyport;
  beforeAll(async () => {
    const directory = stack.use(await temporaryDirectory());
    const { path } = directory;
    const ports = [await freePort(), await freePort(), await freePort(), await freePort()];
    const [amqp, management = 0, distribution, names] = ports.map(Number);
    // The Erlang port mapper, which the server would otherwise start as a daemon.
    stack.use(startProgram("epmd", ["-address", "127.0.0.1", "-port", String(names)]));
    const plugins = await directory.write("plugins", "[rabbitmq_management].\n");
    const settings = await directory.write(
      "rabbitmq.conf",
      [
        `listeners.tcp.1 = 127.0.0.1:${amqp}`,
        `management.tcp.ip = 127.0.0.1`,
        `management.tcp.port = ${management}`,
      ].join("\n"),
    );
    const env = Object.entries({
      HOME: path,
      RABBITMQ_NODENAME: "sallyport@localhost",
      RABBITMQ_CONFIG_FILE: settings,
      RABBITMQ_ENABLED_PLUGINS_FILE: plugins,
      RABBITMQ_MNESIA_BASE: `${path}/mnesia`,
      RABBITMQ_LOG_BASE: `${path}/log`,
      RABBITMQ_PID_FILE: `${path}/pid`,
      RABBITMQ_DIST_PORT: String(distribution),
      ERL_EPMD_PORT: String(names),
    }).map(([name, value]) => `${name}=${value}`);
    const server = stack.use(startProgram("env", [...env, SERVER]));
    await until(() => {
      if (server.exited()) throw new Error(server.output());
      return ask({ port: management }, "/api/overview", { headers: { authorization: GUEST } }).then(
        ({ status }) => status === 200,
        () => false,
      );
    }, 90_000);
    gate = stack.use(
      await startSallyport({
        target: `http://127.0.0.1:${management}`,
        config: {
          routes: [
            {
              name: "broker",
              path: "/",
              upstream: "app",
              paths: "encoded",
              requestHeaders: { set: { Authorization: GUEST } },
            },
          ],
        },
      }),
    );
  }, 120_000);
  afterAll(() => stack.disposeAsync());

  const api = (method: string, path: string, content?: object) =>
    ask(gate, path, {
      method,
      token: gate.token,
      headers: { "content-type": "application/json" },
      ...(content === undefined ? {} : { body: JSON.stringify(content) }),
    });

  it("creates, fills, reads and deletes a queue with a slash in its name, on the virtual host /", async () => {
    expect((await ask(gate, "/api/queues/%2F")).status).toBe(401);
    const queue = `/api/queues/%2F/${encodeURIComponent("orders/new#1")}`;
    expect((await api("PUT", queue, { durable: true })).status).toBe(201);
    const routed = await api("POST", "/api/exchanges/%2F/amq.default/publish", {
      properties: {},
      routing_key: "orders/new#1",
      payload: "hello",
      payload_encoding: "string",
    });
    expect(JSON.parse(routed.body)).toEqual({ routed: true });
    const taken = await api("POST", `${queue}/get`, {
      count: 1,
      ackmode: "ack_requeue_false",
      encoding: "auto",
    });
    expect(JSON.parse(taken.body)).toMatchObject([{ payload: "hello" }]);
    const all = JSON.parse((await api("GET", "/api/queues/%2f?columns=name,vhost")).body);
    expect(all).toEqual([{ name: "orders/new#1", vhost: "/" }]);
    expect((await api("DELETE", queue)).status).toBe(204);
    expect((await api("GET", queue)).status).toBe(404);
  });

  it("manages virtual hosts, users and permissions with special characters in their names", async () => {
    const vhost = encodeURIComponent("shop/eu");
    expect((await api("PUT", `/api/vhosts/${vhost}`)).status).toBe(201);
    const user = encodeURIComponent("a@b+c d");
    const tags = { password: "x", tags: "monitoring" };
    expect((await api("PUT", `/api/users/${user}`, tags)).status).toBe(201);
    const grant = { configure: ".*", write: ".*", read: ".*" };
    const permission = `/api/permissions/${vhost}/${user}`;
    expect((await api("PUT", permission, grant)).status).toBe(201);
    const { body } = await api("GET", permission);
    expect(JSON.parse(body)).toMatchObject({ vhost: "shop/eu", user: "a@b+c d" });
  });

  it("serves its web page", async () => {
    const { status, body } = await api("GET", "/");
    expect(status).toBe(200);
    expect(body).toContain("RabbitMQ Management");
  });
});
