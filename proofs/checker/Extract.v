(** The checker as an OCaml program. Lists, pairs, options and truth values become OCaml's own; numbers stay Coq's,
    binary and of any length, so that nothing about arithmetic has to be trusted besides the theorem. *)
From Coq Require Import ZArith Extraction ExtrOcamlBasic.
From LB Require Import Checker.

Extraction Language OCaml.
Set Extraction AccessOpaque.
Extraction "checked.ml" check Z.add Z.mul Z.opp.
