/**
 * Tests that the image runs, without a registry: the files of its last stage are laid out here, byte for byte, and
 * started the way the image starts them, by uid 65532 from read-only directories.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { request as httpRequest, type RequestOptions } from "node:http";
import { request as httpsRequest } from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { testCertificates } from "../support/certificates.ts";
import { startEchoBackend, type EchoBackend } from "../support/echo-backend.ts";
import { finalStage, layOutImage, type FinalStage } from "../support/image-layout.ts";
import { ALICE, cheapHash } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";
import { until } from "../support/until.ts";

const UID = 65_532;

/** Only root may start a process as another user. */
const mayChangeUser = process.getuid?.() === 0;

describe("the last stage of the Dockerfile", () => {
  it("runs no commands at build time, and has an unprivileged user", async () => {
    const { instructions, user } = await finalStage();
    expect(instructions.filter((line) => /^(RUN|ADD)\b/.test(line))).toEqual([]);
    expect(user).toBe(`${UID}:${UID}`);
  });
});

describe.skipIf(!mayChangeUser)(
  "its content (skipped unless root, since it runs as uid 65532)",
  () => {
    let stage: FinalStage;
    let directory: TemporaryDirectory;
    let root: string;
    let configuration: string;
    let backend: EchoBackend;
    let ca: string;
    let sidecar: ChildProcess;
    const log: Record<string, unknown>[] = [];

    /** Starts a command of the Dockerfile, with absolute paths below the laid-out root. */
    function start(command: readonly string[], args: readonly string[], env: object): ChildProcess {
      const [program = "", ...rest] = command.map((word) =>
        word.startsWith("/") ? join(root, word) : word,
      );
      return spawn(program, [...rest, ...args], {
        uid: UID,
        gid: UID,
        cwd: join(root, "app"),
        env: { HOME: "/nonexistent", ...env },
        stdio: ["ignore", "pipe", "inherit"],
      });
    }

    function portOf(message: string): number {
      return Number(log.find(({ msg }) => msg === message)?.["port"]);
    }

    async function ask(options: RequestOptions, body?: string) {
      const sent = httpsRequest({ host: "127.0.0.1", port: portOf("listening"), ca, ...options });
      return answerOf(sent.end(body));
    }

    beforeAll(async () => {
      stage = await finalStage();
      directory = await temporaryDirectory();
      await chmod(directory.path, 0o755);
      root = join(directory.path, "root");
      await layOutImage(stage, root, join(directory.path, "scratch"));
      backend = await startEchoBackend();
      const certificates = await testCertificates();
      ca = certificates.ca;
      configuration = join(directory.path, "configuration");
      await mkdir(configuration);
      const files = {
        "tls.crt": certificates.server.cert,
        "tls.key": certificates.server.key,
        "users.yaml": JSON.stringify({
          users: { [ALICE.username]: { password: cheapHash(ALICE.password), groups: ["sales"] } },
        }),
        "config.yaml": JSON.stringify({
          server: {
            listen: "127.0.0.1:0",
            tls: { certFile: "tls.crt", keyFile: "tls.key" },
            workers: 2,
            drain: { delay: "0s", timeout: "5s" },
          },
          admin: { listen: "127.0.0.1:0" },
          users: [{ kind: "file", path: "users.yaml" }],
          upstreams: { app: { targets: [backend.url] } },
          log: { format: "json" },
        }),
      };
      for (const [name, content] of Object.entries(files)) {
        await writeFile(join(configuration, name), content, { mode: 0o444 });
      }
      await chmod(configuration, 0o555);

      const config = join(configuration, "config.yaml");
      sidecar = start(stage.entrypoint, ["serve", "--config", config], {});
      if (sidecar.stdout === null) {
        throw new Error("the standard output of the sidecar is not piped");
      }
      createInterface({ input: sidecar.stdout }).on("line", (line) => log.push(JSON.parse(line)));
      await until(() => portOf("listening") > 0 && portOf("admin listening") > 0, 20_000);
    });

    afterAll(async () => {
      sidecar?.kill("SIGKILL");
      await backend?.close();
      await directory?.close();
    });

    it("contains the bundle, the licences and the docs, but no tools or tests", async () => {
      const app = await readdir(join(root, "app"));
      expect(app.toSorted()).toEqual(["LICENSE", "dist", "docs"]);
      const built = await readdir(join(root, "app/dist"), { recursive: true });
      expect(built).toContain("main.js");
      const others = built.filter((name) => !name.endsWith(".js"));
      expect(others.toSorted()).toEqual(["THIRD-PARTY-LICENSES.txt", "package.json"]);
    });

    it("is ready", async () => {
      const { status } = await answerOf(
        httpRequest({ host: "127.0.0.1", port: portOf("admin listening"), path: "/readyz" }).end(),
      );
      expect(status).toBe(200);
    });

    it("logs in and forwards", async () => {
      const { username, password } = ALICE;
      const login = await ask(
        {
          method: "POST",
          path: "/api/authenticate",
          headers: { "content-type": "application/json" },
        },
        JSON.stringify({ username, password }),
      );
      expect(login.status).toBe(200);
      const { token } = JSON.parse(login.body) as { token: string };
      const forwarded = await ask({
        path: "/orders?page=2",
        headers: { authorization: `Bearer ${token}` },
      });
      expect(forwarded.status).toBe(200);
      expect(backend.requests.map(({ url }) => url)).toEqual(["/orders?page=2"]);
      expect((await ask({ path: "/orders" })).status).toBe(401);
    });

    it("passes its own health check", async () => {
      const check = start(
        stage.healthcheck,
        ["--config", join(configuration, "config.yaml")],
        // The configuration says port 0, which the environment overrides.
        { SALLYPORT_ADMIN__LISTEN: `127.0.0.1:${portOf("admin listening")}` },
      );
      expect(await once(check, "exit")).toEqual([0, null]);
    });

    it("stops with exit code 0", async () => {
      sidecar.kill("SIGTERM");
      expect(await once(sidecar, "exit")).toEqual([0, null]);
    });
  },
);

async function answerOf(sent: ReturnType<typeof httpRequest>) {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  sent.on("error", reject);
  sent.on("response", (response) => {
    text(response).then((body) => resolve({ status: response.statusCode ?? 0, body }), reject);
  });
  return promise;
}
