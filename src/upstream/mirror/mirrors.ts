import type { Observer } from "../../core/observer.ts";
import type { Permit } from "../../core/request/permit.ts";
import type { Mirror, MirrorResult } from "../../core/route/mirror.ts";
import { TimeoutList } from "../../lib/async/timeout-list.ts";
import type { ForwardingSettings } from "../http/permitted-request.ts";
import type { Requester } from "../pool/in-flight-counts.ts";
import type { Upstream } from "../pool/upstreams.ts";
import { BodyCopy } from "./body-copy.ts";
import { MirroredRequest } from "./mirrored-request.ts";

/** The time for a body to be complete, in milliseconds. */
const BODY_MS = 10_000;

/**
 * To an upstream, all copies are one requester, so that they never take the slots reserved for others. No subject
 * has this name.
 */
const MIRRORED = "\0mirrored";

/** Sends copies of requests to other upstreams and counts the results. The requests never wait for them. */
export class Mirrors {
  readonly #upstreams: ReadonlyMap<string, Upstream>;
  readonly #settings: ForwardingSettings;
  readonly #observer: Pick<Observer, "requestMirrored">;
  readonly #bodies: TimeoutList;

  constructor(
    upstreams: ReadonlyMap<string, Upstream>,
    settings: ForwardingSettings,
    observer: Pick<Observer, "requestMirrored">,
  ) {
    this.#upstreams = upstreams;
    this.#settings = settings;
    this.#observer = observer;
    this.#bodies = new TimeoutList(BODY_MS, settings.clock);
  }

  /** Returns the receiver of the body of a request; undefined if the request is not mirrored. */
  copyOf(permit: Permit, mirror: Mirror): BodyCopy | undefined {
    const upstream = this.#upstreams.get(mirror.upstream);
    if (upstream === undefined || Math.random() * 100 >= mirror.percent) return undefined;
    const dropped = (why: MirrorResult): void =>
      this.#observer.requestMirrored(mirror.upstream, why);
    const copy = new BodyCopy(mirror.bodyBytes, this.#settings.buffered, {
      dropped,
      // The request itself goes first.
      copied: (body, reserved) =>
        void setImmediate(() => this.#send(upstream, permit, body, reserved)),
    });
    copy.begin(permit.request.bodyLength, this.#bodies);
    return copy;
  }

  #send(upstream: Upstream, permit: Permit, body: Buffer | undefined, reserved: number): void {
    const requester: Requester = { client: permit.request.network, user: MIRRORED };
    const target = upstream.take(requester);
    const done = (result: MirrorResult): void => {
      if (target !== undefined) upstream.release(target, requester);
      this.#settings.buffered.free(reserved);
      this.#observer.requestMirrored(upstream.name, result);
    };
    if (target === undefined) done("no_connection");
    else new MirroredRequest(this.#settings, upstream, target, done).send(permit, body);
  }
}
