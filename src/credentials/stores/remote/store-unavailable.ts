import { RemoteError } from "../../../lib/text/remote-error.ts";

/** A store could not be asked, or gave no answer that can be used. */
export class StoreUnavailable extends RemoteError {}
