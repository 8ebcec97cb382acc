(** * Certificates of the kind "priced-envelopes": the check, for a pool that fills every slot

    An assignment of envelope [M], its largest load, that admits [T] tokens costs [G M - (loads before) - T]. If it
    costs less than [C] and its envelope lies in [a..b], it admits at least

      [needed = max (least_admitted, G a - (loads before) - (C - 1))]

    tokens, and each worker has room for [b - load] at most. So the case with these rooms and this need is possible. A
    certificate covers all envelopes that a cost below [C] allows with ranges [a..b], and refutes the case of each.
    In Python: [lbopt/solvers/certificates/priced.py], [tree.py]. *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify ssrZ.
From LB Require Import Model Extremes Realise Elementary BestProfit Cases Trees.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

(** A step as lists, and the evidence. *)
Record step := Step {
  loads : seq Z;              (* of each worker, tokens *)
  free : seq nat;             (* its free slots *)
  waiting : seq (Z * bool)    (* size of each request, and whether it must be admitted *)
}.

Record node := Node {
  first_envelope : Z;
  last_envelope : Z;
  node_prices : nat;          (* a price vector *)
  tree : seq record           (* empty where the prices suffice *)
}.

(** ** Smallest and largest sums *)
Definition least_total (n : nat) (xs : seq Z) : Z := zsum id (take n (sort Z.leb xs)).
Definition most_total (n : nat) (xs : seq Z) : Z := (- least_total n (map Z.opp xs))%Z.

Lemma leb_total : total Z.leb.
Proof. by move=> a b; lia. Qed.

Lemma leb_trans : transitive Z.leb.
Proof. by move=> b a d; lia. Qed.

Lemma zsum_map (T U : Type) (F : U -> Z) (f : T -> U) s : zsum F (map f s) = zsum (F \o f) s.
Proof. by elim: s => //= x s ->. Qed.

Lemma zsum_eq (T : eqType) (F H : T -> Z) s : {in s, F =1 H} -> zsum F s = zsum H s.
Proof.
elim: s => //= x s IH E; rewrite E ?mem_head // IH // => z zs; apply: E; by rewrite inE zs orbT.
Qed.

Section Totals.
Variables (R : finType) (h : R -> Z).

Lemma least_total_le (A B : {set R}) (xs : seq Z) : A \subset B -> perm_eq xs [seq h i | i <- enum B] ->
  (least_total #|A| xs <= zsum h (enum A))%Z.
Proof.
move=> AB Hp; rewrite /least_total.
have -> : sort Z.leb xs = sort Z.leb [seq h i | i <- enum B].
  by apply/perm_sortP => //; [exact: leb_total | exact: leb_trans | move=> x y; lia].
have Hsub : subseq [seq h i | i <- enum A] [seq h i | i <- enum B].
  apply: map_subseq; have -> : enum A = filter (mem A) (enum B).
    rewrite /enum_mem -filter_predI; apply: eq_filter => i /=; rewrite andb_idr //; exact: (subsetP AB).
  exact: filter_subseq.
have := least_of_sortedZ (sort_sorted leb_total _) (subseq_sort leb_total leb_trans Hsub).
by rewrite size_sort size_map -cardE (zsum_perm id (permEl (perm_sort _ _))) zsum_map.
Qed.
End Totals.

Lemma zsum_opp (T : Type) (F : T -> Z) s : zsum (fun x => - F x)%Z s = (- zsum F s)%Z.
Proof. by elim: s => //= x s ->; lia. Qed.

Lemma most_total_ge (R : finType) (h : R -> Z) (A B : {set R}) xs : A \subset B -> perm_eq xs [seq h i | i <- enum B] ->
  (zsum h (enum A) <= most_total #|A| xs)%Z.
Proof.
move=> AB Hp; rewrite /most_total.
have Hq : perm_eq (map Z.opp xs) [seq (- h i)%Z | i <- enum B] by rewrite (map_comp Z.opp h); apply: perm_map.
by have := least_total_le AB Hq; rewrite zsum_opp; lia.
Qed.

(** ** The check *)
Section Check.
Variables (s : step) (scale : Z) (vectors : seq (seq Z)) (nodes : seq node) (C : Z).

Definition key_le (x z : Z * bool) : bool := (x.1 <? z.1)%Z || (x.1 =? z.1)%Z && (x.2 ==> z.2).

(** Classes: the distinct pairs (size, must be admitted), ascending. *)
Definition keys : seq (Z * bool) := undup (sort key_le (waiting s)).
Definition class_sizes : seq Z := map fst keys.
Definition class_forced : seq bool := map snd keys.
Definition class_of (key : Z * bool) : nat := index key keys.
Definition class_counts : seq nat :=
  let classes := map class_of (waiting s) in [seq count_mem k classes | k <- iota 0 (seq.size keys)].

Definition workers_total : Z := zsum id (loads s).
Definition num_workers : Z := Z.of_nat (seq.size (loads s)).
Definition num_free : nat := sumn (free s).

(** Tokens that are admitted at least, and at most: those that must be, and the smallest or largest others. *)
Definition musts : seq Z := [seq x.1 | x <- waiting s & x.2].
Definition others : seq Z := [seq x.1 | x <- waiting s & ~~ x.2].
Definition least_admitted : Z := (zsum id musts + least_total (num_free - seq.size musts) others)%Z.
Definition most_admitted : Z := (zsum id musts + most_total (num_free - seq.size musts) others)%Z.

(** No assignment has a smaller largest load; none of cost below [C] has a larger one. *)
Definition least_envelope : Z :=
  let sizes := map fst (waiting s) in
  foldr Z.max 0%Z [seq (x.1 + least_total x.2 sizes)%Z | x <- zip (loads s) (free s)].
Definition greatest_envelope : Z := ((C - 1 + workers_total + most_admitted) / num_workers)%Z.

Definition tokens_needed (a : Z) : Z := Z.max least_admitted (num_workers * a - workers_total - (C - 1))%Z.

Definition case_of (a b : Z) : case :=
  Case class_counts [seq (x.2, (b - x.1)%Z) | x <- zip (loads s) (free s)] (tokens_needed a).

(** Ranges in ascending order leave no envelope out. *)
Fixpoint covered (next last : Z) (ranges : seq (Z * Z)) : bool :=
  (last <? next)%Z ||
  match ranges with
  | [::] => false
  | (a, b) :: ranges' => (a <=? next)%Z && covered (Z.max next (b + 1)) last ranges'
  end.

Definition cut (n : node) : Z * Z :=
  (Z.max (first_envelope n) least_envelope, Z.min (last_envelope n) greatest_envelope).

Definition node_refuted (n : node) : bool :=
  let: (a, b) := cut n in
  (b <? a)%Z ||
  (let root := case_of a b in
   refutes class_sizes class_forced (price vectors (node_prices n)) scale root ||
   walk class_sizes class_forced scale vectors (tree n) [:: Some root]).

Definition core_check : bool :=
  (C <=? 0)%Z ||
  covered least_envelope greatest_envelope (sort (fun x z => (x.1 <=? z.1)%Z) (map cut nodes)) &&
  all node_refuted nodes.

Lemma covered_sound next last ranges M : covered next last ranges -> (next <= M <= last)%Z ->
  exists2 r, r \in ranges & (r.1 <= M <= r.2)%Z.
Proof.
elim: ranges next => [|[a b] ranges IH] next /=; first by lia.
case/orP=> [|/andP[an /IH H]] HM; first lia.
case: (Z.leb_spec M b) => Mb; first by exists (a, b); [exact: mem_head | rewrite /=; lia].
by have [|r rin Hr] := H; [lia | exists r; rewrite // inE rin orbT].
Qed.

(** ** Soundness *)
Variables (W R : finType) (p : problem W R).
Hypothesis W0 : 0 < #|W|.
Hypothesis loadsE : loads s = [seq Z.of_nat (base p g) | g <- enum W].
Hypothesis freeE : free s = [seq slots p g | g <- enum W].
Let key_of (i : R) : Z * bool := (Z.of_nat (size p i), must p i).
Hypothesis waitingE : perm_eq (waiting s) [seq key_of i | i <- enum R].
Hypothesis full : free_slots p <= #|R|.
Hypothesis scale_pos : (0 < scale)%Z.
Variable a : assignment W R.
Hypothesis Ha : feasible p a.

Lemma zsum_enum (T : finType) (A : {set T}) (h : T -> nat) :
  zsum (fun i => Z.of_nat (h i)) (enum A) = Z.of_nat (\sum_(i in A) h i).
Proof. by rewrite -big_enum; elim: (enum A) => [|i l IH] /=; rewrite ?big_nil ?big_cons // Nat2Z.inj_add IH. Qed.

Lemma workers_totalE : workers_total = Z.of_nat (\sum_g base p g).
Proof.
rewrite /workers_total loadsE zsum_map -[in RHS]big_enum /= /comp.
by elim: (enum W) => [|g l IH] /=; rewrite ?big_nil ?big_cons // Nat2Z.inj_add -IH.
Qed.

Lemma num_workersE : num_workers = Z.of_nat #|W|.
Proof. by rewrite /num_workers loadsE size_map -cardE. Qed.

Lemma num_freeE : num_free = free_slots p.
Proof. by rewrite /num_free freeE sumnE big_map big_enum. Qed.

Let T : nat := \sum_(i in admitted a) size p i.
Let M : nat := largest (load p a).

Lemma cost_Z : (Z.of_nat (cost p a) + Z.of_nat (\sum_g base p g) + Z.of_nat T = Z.of_nat #|W| * Z.of_nat M)%Z.
Proof. by have := congr1 Z.of_nat (cost_volume p a); rewrite -/T -/M !Nat2Z.inj_add Nat2Z.inj_mul. Qed.

Lemma filter_enum (P : pred R) : enum [set i | P i] = filter P (enum R).
Proof. by rewrite /enum_mem -filter_predI; apply: eq_filter => i /=; rewrite inE andbT. Qed.

Let must_set : {set R} := [set i | must p i].
Let other_set : {set R} := [set i | ~~ must p i].
Let Z_size (i : R) : Z := Z.of_nat (size p i).

Lemma musts_perm : perm_eq musts [seq Z_size i | i <- enum must_set].
Proof.
rewrite /musts filter_enum (perm_trans (perm_map _ (perm_filter _ waitingE))) //.
by rewrite filter_map -map_comp.
Qed.

Lemma others_perm : perm_eq others [seq Z_size i | i <- enum other_set].
Proof.
rewrite /others filter_enum (perm_trans (perm_map _ (perm_filter _ waitingE))) //.
by rewrite filter_map -map_comp.
Qed.

Lemma admitted_split : exists A : {set R}, [/\ A \subset other_set, #|A| = num_free - seq.size musts &
  (Z.of_nat T = zsum id musts + zsum Z_size (enum A))%Z].
Proof.
have [/forallP H1 /eqP H2 /forallP H3] := and3P Ha.
have Hadm : #|admitted a| = num_free by rewrite num_freeE H2 /num_admitted (minn_idPr full).
have Hsub : must_set \subset admitted a.
  by apply/subsetP => i; rewrite !inE => mi; have := H3 i; rewrite mi.
exists (admitted a :\: must_set); split.
- by apply/subsetP => i; rewrite !inE => /andP[].
- by rewrite cardsD (setIidPr Hsub) Hadm (perm_size musts_perm) size_map -cardE.
rewrite (zsum_perm id musts_perm) zsum_map /comp /Z_size !zsum_enum -Nat2Z.inj_add; congr Z.of_nat.
rewrite /T (big_setID must_set) /=; congr addn; apply: eq_bigl => i.
by rewrite inE andb_idl // => /(subsetP Hsub).
Qed.

Lemma admitted_bounds : (least_admitted <= Z.of_nat T <= most_admitted)%Z.
Proof.
have [A [AB cA ->]] := admitted_split; rewrite /least_admitted /most_admitted -cA.
by have := least_total_le AB others_perm; have := most_total_ge AB others_perm; lia.
Qed.

(** Envelopes of a cheaper assignment. *)
Hypothesis cheap : (Z.of_nat (cost p a) < C)%Z.

Lemma envelope_least : (least_envelope <= Z.of_nat M)%Z.
Proof.
rewrite /least_envelope loadsE freeE; set sizes := map fst (waiting s).
have Hp : perm_eq sizes [seq Z_size i | i <- enum [set: R]].
  rewrite (perm_trans (perm_map _ waitingE)) // -map_comp.
  by have -> : enum [set: R] = enum R by apply: eq_enum => i; rewrite !inE.
elim: (enum W) => [|g l IH] /=; first lia.
suff : (Z.of_nat (base p g) + least_total (slots p g) sizes <= Z.of_nat M)%Z by lia.
have /leP := le_largest (load p a) g; rewrite -/M /load.
have := @least_total_le R Z_size (on a g) setT sizes (subsetT _) Hp.
rewrite (slots_filled full Ha) /Z_size zsum_enum; lia.
Qed.

Lemma envelope_greatest : (Z.of_nat M <= greatest_envelope)%Z.
Proof.
rewrite /greatest_envelope num_workersE workers_totalE; apply: Z.div_le_lower_bound; first by lia.
have [_] := admitted_bounds; have := cost_Z; lia.
Qed.

Lemma enough_admitted (lo : Z) : (lo <= Z.of_nat M)%Z -> (tokens_needed lo <= Z.of_nat T)%Z.
Proof.
move=> HM; rewrite /tokens_needed num_workersE workers_totalE; have [] := admitted_bounds; have := cost_Z; nia.
Qed.

(** ** The filling that an assignment is *)
Let class (i : R) : nat := class_of (key_of i).
Definition pattern_of (g : W) : seq nat := [seq class i | i <- enum (on a g)].
Definition patterns_of : seq (seq nat) := [seq pattern_of g | g <- enum W].

Lemma key_in (i : R) : key_of i \in keys.
Proof.
by rewrite /keys mem_undup mem_sort (perm_mem waitingE); apply: map_f; rewrite mem_enum.
Qed.

Lemma nth_key (i : R) : nth (0%Z, false) keys (class i) = key_of i.
Proof. by rewrite nth_index // key_in. Qed.

Lemma class_lt (i : R) : class i < seq.size keys.
Proof. by rewrite index_mem key_in. Qed.

Lemma class_size (i : R) : size_of class_sizes (class i) = Z_size i.
Proof. by rewrite /size_of /class_sizes (nth_map (0%Z, false)) ?class_lt // nth_key. Qed.

Lemma class_must (i : R) : is_forced class_forced (class i) = must p i.
Proof. by rewrite /is_forced /class_forced (nth_map (0%Z, false)) ?class_lt // nth_key. Qed.

Lemma count_class (A : {set R}) (k : nat) :
  count_mem k [seq class i | i <- enum A] = #|[set i in A | class i == k]|.
Proof.
rewrite count_map -size_filter cardE; congr seq.size.
by rewrite /enum_mem -filter_predI; apply: eq_filter => i /=; rewrite !inE andbC.
Qed.

Lemma counts_of (k : nat) : nth 0 class_counts k = if k < seq.size keys then #|[set i | class i == k]| else 0.
Proof.
rewrite /class_counts; case: ltnP => Hk; last by rewrite nth_default // size_map size_iota.
rewrite (nth_map 0) ?size_iota // nth_iota // add0n.
have /seq.permP -> := perm_map class_of waitingE; rewrite -map_comp.
have -> : enum R = enum [set: R] by apply/esym/eq_enum => i; rewrite !inE.
by rewrite (count_class setT k); apply: eq_card => i; rewrite !inE.
Qed.

Lemma count_patterns (k : nat) : count_mem k (flatten patterns_of) = #|[set i in admitted a | class i == k]|.
Proof.
rewrite count_flatten /patterns_of -map_comp sumnE big_map big_enum /=.
rewrite (eq_bigr (fun g => #|[set i in [set i | class i == k] | a i == Some g]|)); last first.
  by move=> g _; rewrite /= count_class; apply: eq_card => i; rewrite !inE andbC.
by rewrite sum_over_workers; apply: eq_card => i; rewrite !inE andbC.
Qed.

Lemma pattern_total (g : W) :
  zsum (size_of class_sizes) (pattern_of g) = Z.of_nat (\sum_(i in on a g) size p i).
Proof. by rewrite -zsum_enum /pattern_of zsum_map; apply: zsum_eq => i _; rewrite /= class_size. Qed.

Lemma patterns_total : zsum (size_of class_sizes) (flatten patterns_of) = Z.of_nat T.
Proof.
have <- : \sum_g \sum_(i in on a g) size p i = T.
  by have := total_load p a; rewrite /load big_split /= => /addnI.
rewrite zsum_flatten /patterns_of zsum_map -[in RHS]big_enum /= /comp.
elim: (enum W) => [|g l IH] /=; first by rewrite big_nil.
by rewrite big_cons Nat2Z.inj_add -IH pattern_total.
Qed.

Theorem filling_of (lo hi : Z) : (Z.of_nat M <= hi)%Z ->
  filling class_sizes class_forced (case_of lo hi) patterns_of.
Proof.
move=> HM; split=> [|g|k|k].
- by rewrite /patterns_of /= !size_map size_zip loadsE freeE !size_map minnn.
- have -> : seq.size (workers (case_of lo hi)) = seq.size (enum W).
    by rewrite size_map size_zip loadsE freeE !size_map minnn.
  move=> Hg.
  case/card_gt0P: W0 => g0 _; pose x := nth g0 (enum W) g.
  have -> : nth [::] patterns_of g = pattern_of x by rewrite /patterns_of (nth_map g0).
  have -> : worker (case_of lo hi) g = (slots p x, (hi - Z.of_nat (base p x))%Z).
    have Hl : seq.size (loads s) = seq.size (enum W) by rewrite loadsE size_map.
    have Hf : seq.size (free s) = seq.size (enum W) by rewrite freeE size_map.
    rewrite /worker /case_of /workers (nth_map (0%Z, 0)); last by rewrite size_zip Hl Hf minnn.
    rewrite nth_zip ?Hl ?Hf // [snd _]/= [fst _]/= loadsE freeE.
    by congr (_, (_ - _)%Z); exact: nth_map Hg.
  split; first by rewrite size_map -cardE (slots_filled full Ha).
  by rewrite pattern_total; have /leP := le_largest (load p a) x; rewrite -/M /load [snd _]/=; lia.
- rewrite count_patterns /copies /= counts_of; case: ltnP => Hk; first by
    apply: subset_leq_card; apply/subsetP => i; rewrite !inE => /andP[].
  rewrite leqn0 cards_eq0 -subset0; apply/subsetP => i; rewrite !inE => /andP[_ /eqP E].
  by have := class_lt i; rewrite E ltnNge Hk.
move=> Hk; rewrite count_patterns /copies /= counts_of; case: ltnP => Hks; last first.
  by move: Hk; rewrite /is_forced nth_default // size_map.
apply: eq_card => i; rewrite !inE andb_idl // => /eqP E.
have [_ _ /forallP/(_ i)] := and3P Ha; by rewrite -class_must E Hk.
Qed.

Hypothesis sizes_ge0 : all (fun v => (0 <=? v)%Z) class_sizes.

Lemma node_sound (n : node) : node_refuted n -> ~ ((cut n).1 <= Z.of_nat M <= (cut n).2)%Z.
Proof.
rewrite /node_refuted; case: (cut n) => lo hi /=; case/orP=> [Hlt|H] [H1 H2]; first lia.
have Hf := filling_of lo H2.
have Himp : impossible class_sizes class_forced (case_of lo hi).
  by case/orP: H => H; [exact: refutes_sound H | exact: tree_sound H].
by have := Himp _ Hf; rewrite patterns_total /=; have := enough_admitted H1; lia.
Qed.

Lemma refuted_node (r : Z * Z) : all node_refuted nodes -> r \in map cut nodes ->
  exists2 n, node_refuted n & r = cut n.
Proof.
by elim: nodes => //= n l IH /andP[Hn /IH H]; rewrite inE => /orP[/eqP->|/H//]; exists n.
Qed.

Lemma core_contradiction : core_check -> False.
Proof.
case/orP=> [|/andP[Hcov Hall]]; first by have := cheap; lia.
have [|r rin HM] := covered_sound Hcov (M := Z.of_nat M).
  by have := envelope_least; have := envelope_greatest; lia.
move: rin; rewrite mem_sort => /(refuted_node Hall)[n Hn E]; by apply: (node_sound Hn); rewrite -E.
Qed.

End Check.

(** What the check accepts is a lower bound on the cost of every feasible assignment. *)
Theorem core_sound (s : step) (scale : Z) (vectors : seq (seq Z)) (nodes : seq node) (C : Z)
    (W R : finType) (p : problem W R) :
  0 < #|W| -> loads s = [seq Z.of_nat (base p g) | g <- enum W] -> free s = [seq slots p g | g <- enum W] ->
  perm_eq (waiting s) [seq (Z.of_nat (size p i), must p i) | i <- enum R] ->
  free_slots p <= #|R| -> (0 < scale)%Z -> core_check s scale vectors nodes C ->
  forall a, feasible p a -> (C <= Z.of_nat (cost p a))%Z.
Proof.
move=> W0 HL HF HW full scale_pos Hcheck a Ha.
case: (Z.leb_spec C (Z.of_nat (cost p a))) => // cheap; exfalso.
have sizes_ge0 : all (fun v => (0 <=? v)%Z) (class_sizes s).
  apply/allP => v /mapP[key]; rewrite /keys mem_undup mem_sort (perm_mem HW) => /mapP[i _ ->] -> /=; lia.
exact: (core_contradiction W0 HL HF HW full scale_pos Ha cheap sizes_ge0 Hcheck).
Qed.
