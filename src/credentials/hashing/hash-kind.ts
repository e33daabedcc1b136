/** A password hash that was parsed and accepted. */
export interface PasswordHash {
  /** Why this hash is too weak for a users file; undefined if it is strong enough. */
  readonly weak?: string;
  /** How the hash falls short of the OWASP Password Storage Cheat Sheet, without quoting it; undefined if it does not. */
  readonly outdated?: string;
  /** Computes for tens to hundreds of milliseconds on the calling thread. */
  matches(password: string): boolean;
}

/** Why a hash is refused: a fixed text that quotes nothing from the hash. */
export interface HashRefusal {
  readonly refused: string;
}

/** A password hashing scheme. Its limits keep a single hash from exhausting the machine. */
export interface HashKind {
  /** Reports whether the text claims to be of this kind. */
  claims(text: string): boolean;
  /** Parses and checks the whole text without expensive computation. */
  read(text: string): PasswordHash | HashRefusal;
}
