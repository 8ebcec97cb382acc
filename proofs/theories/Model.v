(** * The step problem, as [lbopt.model] defines it

    Workers meet at a barrier in every step. Worker [g] holds [base g] tokens and has [slots g] free slots. Requests
    wait; request [i] brings [size i] tokens. An assignment names a worker for each request that is admitted, and no
    worker for a request that keeps waiting.

    This file holds definitions only, and what a reader has to believe is here: every theorem of this development
    speaks of these words. The same definitions in Python: [lbopt/model/step_problem.py], [lbopt/model/objective.py]
    (horizon 0). Source: BF-IO (arXiv 2601.17855), section 4, program (IO), and equation (2). *)
From mathcomp Require Import all_ssreflect.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** ** Largest and smallest value of a function on a finite type, and their distance

    [smallest] starts from the largest value, so that it needs no convention for an empty minimum. *)
Definition largest (W : finType) (F : W -> nat) : nat := \max_g F g.
Definition smallest (W : finType) (F : W -> nat) : nat := \big[minn/largest F]_g F g.
Definition gap (W : finType) (F : W -> nat) : nat := largest F - smallest F.

(** G * max - sum: how many tokens the workers below the maximum could have held besides. Equation (2) of BF-IO;
    [lbopt.model.objective.imbalance]. [imbalance_margins] in [Extremes.v] shows that it is the sum of the margins. *)
Definition imbalance (W : finType) (load : W -> nat) : nat := #|W| * largest load - \sum_g load g.

(** The loads in decreasing order. *)
Definition sorted_loads (W : finType) (load : W -> nat) : seq nat :=
  sort geq [seq load g | g <- enum W].

(** Strict lexicographic order on sequences of one length. *)
Fixpoint lexless (xs ys : seq nat) : bool :=
  match xs, ys with
  | x :: xs', y :: ys' => (x < y) || (x == y) && lexless xs' ys'
  | _, _ => false
  end.

Section Problem.
Variables (W R : finType).

Record problem := Problem {
  base : W -> nat;      (* tokens that a worker holds before the decision *)
  slots : W -> nat;     (* its free slots *)
  size : R -> nat;      (* tokens of a waiting request *)
  must : pred R         (* requests that have to be admitted *)
}.

(** [a i = Some g]: request [i] goes to worker [g]; [a i = None]: it keeps waiting. In Python: [g], and -1. *)
Definition assignment := {ffun R -> option W}.

Variable p : problem.
Implicit Type a : assignment.

Definition free_slots : nat := \sum_g slots p g.

(** U = min (N, free slots). *)
Definition num_admitted : nat := minn #|R| free_slots.

Definition on a g : {set R} := [set i | a i == Some g].
Definition admitted a : {set R} := [set i | a i != None].

(** Exactly U requests are admitted, those that must be among them, and no worker takes more than it has slots. *)
Definition feasible a : bool :=
  [&& [forall g, #|on a g| <= slots p g], #|admitted a| == num_admitted & [forall i, must p i ==> (a i != None)]].

(** [lbopt.model.objective.loads_after]. *)
Definition load a g : nat := base p g + \sum_(i in on a g) size p i.

(** [lbopt.model.objective.objective]. *)
Definition cost a : nat := imbalance (load a).

(** No feasible assignment costs less. *)
Definition optimal a : Prop := feasible a /\ forall a', feasible a' -> cost a <= cost a'.

(** Among the optima the loads in decreasing order are lexicographically least. *)
Definition leximax a : Prop :=
  optimal a /\ forall a', optimal a' -> ~~ lexless (sorted_loads (load a')) (sorted_loads (load a)).

(** No exchange of two admitted requests between two workers brings both new loads below the larger old one: request [i]
    on [g] is larger than [j] on [h], and still [L_h + size i - size j < L_g]. *)
Definition exchange_stable a : Prop :=
  forall g h i j, a i = Some g -> a j = Some h -> size p j < size p i ->
  load a g + size p j <= load a h + size p i.

(** Definition 1 of BF-IO, "overloaded": for every size [x] the pool holds at least U requests that are not of size [x],
    with U the number of free slots. *)
Definition overloaded : Prop := forall x, free_slots <= #|[set i | size p i != x]|.

End Problem.
