/** A password hash that was read and found usable. */
export interface PasswordHash {
  /** Computes for tens to hundreds of milliseconds, on the calling thread. */
  matches(password: string): boolean;
}

/** Why a hash is not accepted; a fixed text that holds nothing of the hash. */
export interface HashRefusal {
  readonly refused: string;
}

/** One way of hashing passwords. Its limits keep a single hash from taking the machine down. */
export interface HashKind {
  /** Whether the text claims to be of this kind. */
  claims(text: string): boolean;
  /** Reads and checks all of the text, without any expensive computation. */
  read(text: string): PasswordHash | HashRefusal;
}
