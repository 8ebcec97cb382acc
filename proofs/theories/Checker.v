(** * The checker, on the arrays of [lbopt.StepProblem], and its theorem

    [input] is what the problem file holds at horizon 0: loads before the decision, free slots, sizes of the waiting
    requests, and which of them must be admitted. [problem_of] reads it as a problem of [Model.v]: worker [g] and
    request [i] are positions in the arrays. [check_sound] is what has to be believed about the extracted program: if
    [check] says true, no feasible assignment costs less than the bound of the certificate. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify ssrZ.
From LB Require Import Model BestProfit Cases Trees PricedEnvelopes Padding.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Record input := Input {
  in_loads : seq Z;     (* tokens of each worker *)
  in_slots : seq nat;   (* free slots of each worker *)
  in_sizes : seq Z;     (* tokens of each waiting request *)
  in_must : seq bool    (* whether it has to be admitted *)
}.

Record certificate := Certificate {
  claimed : Z;               (* no assignment costs less, tokens *)
  scale_of : Z;              (* units of price per token *)
  vectors_of : seq (seq Z);  (* price vectors: the price of every class *)
  nodes_of : seq node
}.

(** The problem on [G] workers and [N] requests that the arrays describe. *)
Definition list_problem (G N : nat) (x : input) : problem (ordinal_finType G) (ordinal_finType N) :=
  Problem (fun g : 'I_G => Z.to_nat (nth 0%Z (in_loads x) g))
          (fun g : 'I_G => nth 0 (in_slots x) g)
          (fun i : 'I_N => Z.to_nat (nth 0%Z (in_sizes x) i))
          (fun i : 'I_N => nth false (in_must x) i).

Definition problem_of (x : input) := list_problem (seq.size (in_loads x)) (seq.size (in_sizes x)) x.

(** Arrays of equal lengths, at least one worker, nothing negative. *)
Definition valid (x : input) : bool :=
  [&& 0 < seq.size (in_loads x), seq.size (in_slots x) == seq.size (in_loads x),
      seq.size (in_must x) == seq.size (in_sizes x),
      all (fun v => (0 <=? v)%Z) (in_loads x) & all (fun v => (0 <=? v)%Z) (in_sizes x)].

(** The least load, and a common divisor of all sizes and differences of loads: costs are its multiples. *)
Definition floor_of (x : input) : Z := foldr Z.min (head 0%Z (in_loads x)) (in_loads x).
Definition unit_of (x : input) : Z :=
  let u := foldr Z.gcd 0%Z (in_sizes x ++ [seq (l - floor_of x)%Z | l <- in_loads x]) in
  if (0 <? u)%Z then u else 1%Z.

Definition reduced (x : input) (m u : Z) : input :=
  Input [seq ((l - m) / u)%Z | l <- in_loads x] (in_slots x) [seq (v / u)%Z | v <- in_sizes x] (in_must x).

Definition step_of (x : input) : step :=
  Step (in_loads x) (in_slots x)
       (zip (in_sizes x) (in_must x) ++ nseq (sumn (in_slots x) - seq.size (in_sizes x)) (0%Z, false)).

(** Ends of a range in reduced units: only envelopes that loads can have. *)
Definition reduced_node (m u : Z) (n : node) : node :=
  Node ((first_envelope n - m + (u - 1)) / u)%Z ((last_envelope n - m) / u)%Z (node_prices n) (tree n).

Definition divides_all (x : input) (m u : Z) : bool :=
  [&& (0 <? u)%Z, (0 <=? m)%Z, all (fun l => (m <=? l)%Z && ((l - m) mod u =? 0)%Z) (in_loads x)
    & all (fun v => (v mod u =? 0)%Z) (in_sizes x)].

Definition check (x : input) (c : certificate) : bool :=
  let m := floor_of x in
  let u := unit_of x in
  [&& valid x, (0 <? scale_of c)%Z, divides_all x m u &
      core_check (step_of (reduced x m u)) (scale_of c * u) (vectors_of c) (map (reduced_node m u) (nodes_of c))
                 ((claimed c + (u - 1)) / u)].

(** ** Soundness *)
Lemma list_as_map (T : Type) (x0 : T) (s : seq T) n : seq.size s = n ->
  s = [seq nth x0 s (val i) | i <- enum 'I_n].
Proof.
move=> Hn; rewrite (map_comp (nth x0 s) val) val_enum_ord -Hn.
by rewrite -/(mkseq (nth x0 s) (seq.size s)) mkseq_nth.
Qed.

Lemma to_nat_affine m u z : (0 <= m)%Z -> (0 <= u)%Z -> (0 <= z)%Z ->
  Z.to_nat (m + u * z) = Z.to_nat m + Z.to_nat u * Z.to_nat z.
Proof. by move=> m0 u0 z0; rewrite Z2Nat.inj_add ?Z2Nat.inj_mul //; apply: Z.mul_nonneg_nonneg. Qed.

Lemma exact_quotient u v : (0 < u)%Z -> (v mod u =? 0)%Z -> v = (u * (v / u))%Z.
Proof. by move=> u0 /Z.eqb_spec H; apply: Z_div_exact_full_2 => //; lia. Qed.

Lemma below_ceiling u C K : (0 < u)%Z -> ((C + (u - 1)) / u <= K)%Z -> (C <= u * K)%Z.
Proof.
move=> u0 H; have := Z.mod_pos_bound (C + (u - 1)) u u0; have := Z.div_mod (C + (u - 1)) u ltac:(lia); nia.
Qed.

Lemma to_nat_id v : (0 <= v)%Z -> Z.of_nat (Z.to_nat v) = v.
Proof. exact: Z2Nat.id. Qed.

Lemma map_constant (T U : Type) (c : U) (s : seq T) : map (fun=> c) s = nseq (seq.size s) c.
Proof. by elim: s => //= _ s ->. Qed.

Section Sound.
Variables (x : input) (c : certificate).
Hypothesis accepted : check x c.
Let m := floor_of x.
Let u := unit_of x.
Let G := seq.size (in_loads x).
Let N := seq.size (in_sizes x).
Let p := problem_of x.
Let p' := list_problem G N (reduced x m u).
Let q := padded p'.

Theorem accepted_bound (a : assignment (ordinal_finType G) (ordinal_finType N)) :
  feasible p a -> (claimed c <= Z.of_nat (cost p a))%Z.
Proof.
move=> Ha; case/and4P: accepted => Hvalid Hscale Hdiv Hcore.
case/and5P: Hvalid => HG /eqP Hslots /eqP Hmust Hloads0 Hsizes0.
case/and4P: Hdiv; rewrite -/m -/u => Hu Hm Hl Hs.
have u0 : (0 < u)%Z by apply/Z.ltb_spec0.
have m0 : (0 <= m)%Z by apply/Z.leb_spec0.
have W0 : 0 < #|ordinal_finType G| by rewrite card_ord.
have loadE g : g < G ->
    (nth 0%Z (in_loads x) g = m + u * ((nth 0%Z (in_loads x) g - m) / u) /\ 0 <= nth 0%Z (in_loads x) g - m)%Z.
  move=> Hg; have /andP[/Z.leb_spec0 H1 H2] := all_nthP 0%Z Hl g Hg; split; last by apply/Z.le_0_sub.
  by rewrite -(exact_quotient u0 H2) Z.add_comm Z.sub_add.
have sizeE i : i < N -> (nth 0%Z (in_sizes x) i = u * (nth 0%Z (in_sizes x) i / u) /\ 0 <= nth 0%Z (in_sizes x) i)%Z.
  move=> Hi; have H1 := all_nthP 0%Z Hs i Hi; have /Z.leb_spec0 H2 := all_nthP 0%Z Hsizes0 i Hi; split=> //.
  exact: exact_quotient.
have div0 v : (0 <= v)%Z -> (0 <= v / u)%Z by move=> v0; apply: Z.div_pos.
have nthL g : g < G -> nth 0%Z (in_loads (reduced x m u)) g = ((nth 0%Z (in_loads x) g - m) / u)%Z.
  by move=> Hg; rewrite /= (nth_map 0%Z).
have nthS i : i < N -> nth 0%Z (in_sizes (reduced x m u)) i = (nth 0%Z (in_sizes x) i / u)%Z.
  by move=> Hi; rewrite /= (nth_map 0%Z).
have u00 := Z.lt_le_incl _ _ u0.
have baseE (g : 'I_G) : base p g = Z.to_nat m + Z.to_nat u * base p' g.
  rewrite /= nthL //; have [E /div0 H] := loadE g (ltn_ord g); rewrite {1}E; exact: to_nat_affine.
have sizeE' (i : 'I_N) : size p i = Z.to_nat u * size p' i.
  rewrite /= nthS //; have [E /div0 H] := sizeE i (ltn_ord i).
  by rewrite {1}E -[(u * _)%Z]Z.add_0_l to_nat_affine.
have Ha' : feasible p' a by rewrite -(feasible_unit (p := p)).
have [b Hb Hload] := padded_assignment Ha'.
have costE : cost p a = Z.to_nat u * cost q b.
  rewrite (cost_unit W0 baseE sizeE') /cost; congr (_ * _).
  by rewrite /imbalance /largest; congr (_ * _ - _); apply: eq_bigr => g _.
have scale0 : (0 < scale_of c * u)%Z by apply: Z.mul_pos_pos => //; apply/Z.ltb_spec0.
pose key (s : padded_requests p') := (Z.of_nat (size q s), must q s).
have loads_q : loads (step_of (reduced x m u)) = [seq Z.of_nat (base q g) | g <- enum (ordinal_finType G)].
  rewrite [LHS](@list_as_map _ 0%Z _ G); last by rewrite size_map.
  apply: eq_map => g; have [_ /div0 H] := loadE g (ltn_ord g).
  by rewrite -[base q g]/(Z.to_nat (nth 0%Z (in_loads (reduced x m u)) g)) nthL // to_nat_id.
have waiting_q : waiting (step_of (reduced x m u)) =
    map key ([seq inl i | i <- enum 'I_N] ++ [seq inr j | j <- enum 'I_(num_blanks p')]).
  rewrite map_cat -(map_comp key (@inl _ _)) -(map_comp key (@inr _ _)); congr (_ ++ _).
    rewrite [LHS](@list_as_map _ (0%Z, false) _ N); last by rewrite size_zip size_map Hmust minnn.
    apply: eq_map => i; rewrite nth_zip ?size_map //; have [_ /div0 H] := sizeE i (ltn_ord i).
    by rewrite /key /= -[in RHS]/(nth 0%Z (in_sizes (reduced x m u)) i) nthS // to_nat_id.
  have -> : sumn (in_slots (reduced x m u)) - seq.size (in_sizes (reduced x m u)) = num_blanks p'.
    rewrite /num_blanks card_ord size_map /free_slots; congr (_ - _).
    by rewrite /= [in LHS](@list_as_map _ 0 (in_slots x) G) // sumnE big_map big_enum.
  by rewrite -[RHS]/(map (fun=> (0%Z, false)) (enum 'I_(num_blanks p'))) map_constant size_enum_ord.
have Hfinal : ((claimed c + (u - 1)) / u <= Z.of_nat (cost q b))%Z.
  apply: (core_sound W0 loads_q _ _ (padded_full p') scale0 Hcore Hb).
    by rewrite [LHS](@list_as_map _ 0 _ G).
  by rewrite waiting_q; apply: perm_map; rewrite perm_sym; apply: enum_padded.
by rewrite costE Nat2Z.inj_mul to_nat_id //; apply: below_ceiling.
Qed.
End Sound.

(** What the checker accepts is a lower bound on the cost of every feasible assignment. *)
Theorem check_sound (x : input) (c : certificate) : check x c ->
  forall a, feasible (problem_of x) a -> (claimed c <= Z.of_nat (cost (problem_of x) a))%Z.
Proof. exact: accepted_bound. Qed.
