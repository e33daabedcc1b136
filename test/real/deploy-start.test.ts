/**
 * The pod runs however it is deployed (plain manifests, component, chart in both modes). The image is unpacked, the
 * volumes are filled the way a kubelet does, and each container starts with the arguments, environment, files and user
 * of its manifest, in read-only directories. Two things differ: the system assigns the ports, and absolute paths are
 * below a directory.
 */
import { execFile } from "node:child_process";
import { createPublicKey } from "node:crypto";
import { chmod, readdir, readFile } from "node:fs/promises";
import { request as httpsRequest, type RequestOptions } from "node:https";
import { join } from "node:path";
import { json } from "node:stream/consumers";
import { promisify } from "node:util";
import { jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { chartRenderer, RENDERER_TIMEOUT, whyNoChart } from "../deploy/chart-renderer.ts";
import { chartWithSidecar } from "../deploy/chart-with-sidecar.ts";
import { DEPLOY } from "../deploy/documents.ts";
import { probePaths } from "../deploy/expectations.ts";
import { kustomized, whyNoKustomize } from "../deploy/kubectl.ts";
import {
  type Container,
  containerOf,
  contentOf,
  type Manifest,
  only,
  type PodSpec,
  readManifests,
} from "../deploy/manifests.ts";
import { mountVolumes, type PodRoot, startContainer } from "../deploy/pod.ts";
import { filledSecrets } from "../deploy/secrets.ts";
import { titled } from "../deploy/titled.ts";
import { testCertificates } from "../support/certificates.ts";
import { finalStage, type FinalStage, layOutImage } from "../support/image-layout.ts";
import { ALICE } from "../support/sallyport.ts";
import { temporaryDirectory, type TemporaryDirectory } from "../support/temporary-directory.ts";

const kubernetes = join(DEPLOY, "kubernetes");
const chart = join(DEPLOY, "helm/sallyport");
const run = promisify(execFile);

/** Only root may start a process as another user. */
const notRoot = process.getuid?.() === 0 ? undefined : "this is not root";

interface Way {
  readonly name: string;
  /** Why it cannot be tested here. */
  readonly missing: string | undefined;
  /** @param scratch an empty directory. */
  manifests(scratch: string): Promise<string>;
}

const WAYS: readonly Way[] = [
  { name: "the plain manifests", missing: undefined, manifests: plainManifests },
  {
    name: "the component",
    missing: whyNoKustomize(),
    manifests: () => kustomized(join(kubernetes, "sample-with-sidecar")),
  },
  {
    name: "the chart, standalone",
    missing: whyNoChart(),
    async manifests(scratch) {
      const upstreams = { app: { targets: ["http://127.0.0.1:8080"] } };
      return (await chartRenderer(scratch)).render(chart, { config: { upstreams } });
    },
  },
  {
    name: "the chart, as a sidecar",
    missing: whyNoChart(),
    async manifests(scratch) {
      const parent = await chartWithSidecar(join(scratch, "orders"));
      return (await chartRenderer(scratch)).render(parent, {});
    },
  },
];

async function plainManifests(): Promise<string> {
  const names = (await readdir(join(kubernetes, "plain"))).filter((name) => name.endsWith(".yaml"));
  const texts = names.map((name) => readFile(join(kubernetes, "plain", name), "utf8"));
  return (await Promise.all(texts)).join("\n---\n");
}

describe.skipIf(notRoot !== undefined)(titled("the pod", notRoot), () => {
  let directory: TemporaryDirectory;
  let image: string;
  let stage: FinalStage;
  let ca: string;
  let secrets: readonly Manifest[];

  beforeAll(async () => {
    directory = await temporaryDirectory();
    await chmod(directory.path, 0o755);
    stage = await finalStage();
    image = join(directory.path, "image");
    await layOutImage(stage, image, join(directory.path, "scratch"));
    ({ ca } = await testCertificates());
    secrets = await filledSecrets();
  });
  afterAll(() => directory?.close());

  /** Starts a container of the pod, which always ends with the test. */
  function start(place: PodRoot, name: string, over: Readonly<Record<string, string>>) {
    const started = startContainer(place, stage, containerOf(place.pod, name), over);
    onTestFinished(() => started.signal("SIGKILL"));
    return started;
  }

  /** Creates a directory with the image and the volumes of a pod. */
  async function laidOut(name: string, manifests: readonly Manifest[]): Promise<PodRoot> {
    const root = join(directory.path, name.replaceAll(/\W+/g, "-"));
    // With links, since a copy of Node takes 100 MB.
    await run("cp", ["--recursive", "--link", image, root]);
    const { spec: pod } = only(manifests, "Deployment").spec.template;
    const place = { root, pod, manifests: [...manifests, ...secrets] };
    await run("chmod", ["u+w", root]);
    await mountVolumes(place, containerOf(pod, "sallyport"));
    await run("chmod", ["-R", "a-w", root]);
    return place;
  }

  describe.each(WAYS)("$name", ({ name, missing, manifests }) => {
    it.skipIf(missing !== undefined)(
      titled("starts, gets ready, accepts a login, forwards and stops", missing),
      async () => {
        const scratch = await temporaryDirectory();
        onTestFinished(() => scratch.close());
        const made = readManifests(await manifests(scratch.path));
        const place = await laidOut(name, made);
        const sample = readManifests(await plainManifests());
        const application = start(
          { ...place, pod: only(sample, "Deployment").spec.template.spec },
          "orders",
          { PORT: "0" },
        );
        const backend = await application.port("orders listening");
        const sallyport = start(place, "sallyport", {
          SALLYPORT_SERVER__LISTEN: "127.0.0.1:0",
          SALLYPORT_ADMIN__LISTEN: "127.0.0.1:0",
          SALLYPORT_UPSTREAMS__APP__TARGETS: `["http://127.0.0.1:${backend}"]`,
        });
        const port = await sallyport.port("listening");
        const adminPort = await sallyport.port("admin listening");
        for (const path of probePaths(containerOf(place.pod, "sallyport"))) {
          const { status } = await fetch(`http://127.0.0.1:${adminPort}${path}`);
          expect([path, status]).toEqual([path, 200]);
        }
        for (const pod of testPods(made, adminPort)) {
          expect(await start({ ...place, pod }, "ready", {}).exit).toBe(0);
        }

        const ask = (options: RequestOptions, body?: object) =>
          answered({ host: "127.0.0.1", port, ca, ...options }, body);
        expect((await ask({ path: "/orders" })).status).toBe(401);
        const headers = { "content-type": "application/json" };
        const login = await ask({ method: "POST", path: "/api/authenticate", headers }, ALICE);
        expect(login).toMatchObject({ status: 200, body: { success: true } });
        // Signed with the key from the Secret, so that tokens outlive the pod.
        const token = String(login.body["token"]);
        const { payload } = await jwtVerify(token, keyAmong(secrets));
        expect(payload.sub).toBe(ALICE.username);
        const authorization = `Bearer ${token}`;
        expect(await ask({ path: "/orders?page=2", headers: { authorization } })).toEqual({
          status: 200,
          body: { path: "/orders?page=2", subject: ALICE.username },
        });
        expect(sallyport.log.filter(({ level }) => level !== "info")).toEqual([]);

        // In the order of a kubelet: first the hook in the same container, while the application keeps running, then
        // the application stops, and finally the sidecar.
        const hook = startContainer(place, stage, preStop(containerOf(place.pod, "sallyport")), {
          SALLYPORT_ADMIN__LISTEN: `127.0.0.1:${adminPort}`,
        });
        onTestFinished(() => hook.signal("SIGKILL"));
        expect(await hook.exit).toBe(0);
        expect(sallyport.log.map(({ msg }) => msg)).toContain("draining");
        expect((await fetch(`http://127.0.0.1:${adminPort}/readyz`)).status).toBe(503);
        for (const each of [application, sallyport]) {
          each.signal("SIGTERM");
          expect(await each.exit).toBe(0);
        }
        expect(sallyport.log.filter(({ level }) => level !== "info")).toEqual([]);
      },
      RENDERER_TIMEOUT,
    );
  });
});

/** Returns the container with the command of its preStop hook. */
function preStop(container: Container): Container {
  const { lifecycle } = container;
  if (lifecycle === undefined || !("exec" in lifecycle.preStop))
    throw new Error("there is no hook");
  return { ...container, command: lifecycle.preStop.exec.command, args: [] };
}

/** Returns the pods of `helm test`. They normally query the Service; here they query the port directly. */
function testPods(made: readonly Manifest[], adminPort: number): PodSpec[] {
  return made.flatMap((each) => {
    if (each.kind !== "Pod") return [];
    const containers = each.spec.containers.map(({ args = [], ...container }) => ({
      ...container,
      args: args.map((word) => word.replace(/^http:\/\/[^/]+/, `http://127.0.0.1:${adminPort}`)),
    }));
    return [{ ...each.spec, containers }];
  });
}

function keyAmong(secrets: readonly Manifest[]) {
  const [jwk = ""] = Object.values(contentOf(only(secrets, "Secret", "sallyport-keys")));
  return createPublicKey({ key: JSON.parse(jwk), format: "jwk" });
}

async function answered(options: RequestOptions, body?: object) {
  const { promise, resolve, reject } = Promise.withResolvers<{
    status: number;
    body: Record<string, unknown>;
  }>();
  const sent = httpsRequest(options, (response) => {
    json(response).then(
      (value) =>
        resolve({ status: response.statusCode ?? 0, body: value as Record<string, unknown> }),
      reject,
    );
  });
  sent.on("error", reject);
  sent.end(body === undefined ? undefined : JSON.stringify(body));
  return promise;
}
