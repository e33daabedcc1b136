import { ServerResponse } from "node:http";

/** A response that knows which request it belongs to, so that one interrupted by the parser keeps its id. */
export class TrackedResponse extends ServerResponse {
  /** The `id` of the envelope and of the log line; 0 until the request has begun. */
  id = 0;
  /** An answer of our own has been written from head to end. */
  whole = false;
  /** The reason word, when Node's parser or a time limit ended the request while it was under way. */
  interruption: string | undefined;
}
