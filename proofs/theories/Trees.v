(** * Trees of decisions: a case is split until prices refute every part

    A tree is a list of records in preorder. A record ends a case that its prices refute, or splits it:

    - a *placement* of class [k]: either nothing more of [k] is admitted, or worker [g] takes one, for some [g];
    - a *branch* on worker [g]: the requests that [g] takes are one of the listed patterns.

    Parts that are left out have to be refuted by the record's prices: for a placement by the profit of the request
    and the best profit of one slot fewer, for a branch by listing every pattern whose profit does not settle it. In
    Python: [lbopt/solvers/certificates/priced.py] and [tree.py]; their leaves "dead" are refuted by prices here.
    *)
From Coq Require Import ZArith.
From mathcomp Require Import all_ssreflect.
From mathcomp Require Import zify ssrZ.
From LB Require Import BestProfit Cases.
Set Implicit Arguments. Unset Strict Implicit. Unset Printing Implicit Defensive.

Inductive record :=
  | Refuted (prices : nat)
  | Placement (class prices : nat) (waits : bool) (takers : seq nat)
  | Branch (chosen prices : nat) (patterns : seq (seq nat)).

Section Trees.
Variables (sizes : seq Z) (forced : seq bool).
Hypothesis sizes_ge0 : all (fun v => (0 <=? v)%Z) sizes.
Implicit Types (c : case) (ts : seq (seq nat)).
Local Notation size_of := (size_of sizes).
Local Notation is_forced := (is_forced forced).
Local Notation filling := (filling sizes forced).
Local Notation impossible := (impossible sizes forced).

(** ** The parts of a case *)

(** Worker [g] takes the requests [t] besides what it takes later. *)
Definition placing c (g : nat) (t : seq nat) : option case :=
  let w := worker c g in
  if (size t <= w.1) && (zsum size_of t <=? w.2)%Z && all (fun k => count_mem k t <= copies c k) t
  then Some (Case (mkseq (fun k => copies c k - count_mem k t) (size (left c)))
                  (set_nth (0, 0%Z) (workers c) g ((w.1 - size t)%N, (w.2 - zsum size_of t)%Z))
                  (need c - zsum size_of t)%Z)
  else None.

Lemma placing_sound c g t r ts : filling c ts -> g < size (workers c) -> perm_eq (nth [::] ts g) (t ++ r) ->
  exists2 c', placing c g t = Some c' &
    filling c' (set_nth [::] ts g r) /\ (need c' = need c - zsum size_of t)%Z /\
    (zsum size_of (flatten ts) = zsum size_of t + zsum size_of (flatten (set_nth [::] ts g r)))%Z.
Proof.
move=> Hfill Hg Hp; have [Hsz Hfit Hc Hf] := Hfill; have Hgt : g < size ts by rewrite Hsz.
have [Hs0 Hr0] := Hfit g Hg.
have Hs : size t + size r = (worker c g).1 by rewrite -Hs0 (perm_size Hp) size_cat.
have Hr : (zsum size_of t + zsum size_of r <= (worker c g).2)%Z by rewrite -zsum_cat -(zsum_perm _ Hp).
have r0 : (0 <= zsum size_of r)%Z by apply: zsum_ge0 => k _; apply: size_of_ge0.
have P1 : perm_eq (flatten ts) (t ++ flatten (set_nth [::] ts g r)).
  apply: perm_trans (flatten_nth Hgt) _; rewrite -(perm_cat2r (flatten (set_nth [::] ts g [::]))) in Hp.
  apply: perm_trans Hp _; rewrite -catA perm_cat2l perm_sym; exact: flatten_set.
have Hcount k : count_mem k (flatten ts) = count_mem k t + count_mem k (flatten (set_nth [::] ts g r)).
  by rewrite (permP P1) count_cat.
have Hcl k : ~~ (k < size (left c)) -> copies c k = 0 by move=> H; rewrite /copies nth_default // leqNgt.
rewrite /placing; have -> : size t <= (worker c g).1 by lia.
have -> : (zsum size_of t <=? (worker c g).2)%Z by lia.
have -> : all (fun k => count_mem k t <= copies c k) t.
  by apply/allP => k _; have := Hc k; rewrite Hcount; lia.
eexists; first by []; split; last by rewrite (zsum_perm _ P1) zsum_cat.
have Hnew k : nth 0 (mkseq (fun k => copies c k - count_mem k t) (size (left c))) k = copies c k - count_mem k t.
  case: (ltnP k (size (left c))) => Hk; first by rewrite nth_mkseq.
  by rewrite nth_default ?size_mkseq // Hcl // -leqNgt.
split=> /= [|h|k|k].
- by rewrite !size_set_nth_in.
- rewrite size_set_nth_in // /worker => Hh; rewrite !nth_set_nth /=; case: (h =P g) => [_|_]; last exact: Hfit.
  by split=> /=; rewrite -/(worker c g); [rewrite -Hs addKn | lia].
- by rewrite /copies /= Hnew leq_subRL -?Hcount // (leq_trans _ (Hc k)) // Hcount leq_addr.
by move=> Hk; rewrite /copies /= Hnew -(Hf k Hk) Hcount addKn.
Qed.

(** All that is left of class [k] waits. *)
Definition without c (k : nat) : case := Case (set_nth 0 (left c) k 0) (workers c) (need c).

Lemma without_sound c k ts : filling c ts -> k \notin flatten ts -> filling (without c k) ts.
Proof.
case=> Hsz Hfit Hc Hf /count_memPn Hk; split=> //= j; rewrite /copies /= nth_set_nth /=.
  by case: (j =P k) => [->|_]; [rewrite Hk | exact: Hc].
by case: (j =P k) => [->|_]; [rewrite Hk | exact: Hf].
Qed.

(** ** What a record's prices settle *)
Variables (y : nat -> Z) (scale : Z).
Hypothesis scale_pos : (0 < scale)%Z.
Local Notation profit_of := (profit_of sizes y scale).
Local Notation bound := (bound forced y).
Local Notation table_of := (table_of sizes y scale).

Lemma zsum_set_nth (bs : seq Z) g x : g < size bs ->
  (zsum id (set_nth 0%Z bs g x) = zsum id bs - nth 0%Z bs g + x)%Z.
Proof. by elim: bs g => // b bs IH [|g] /= Hg; [lia | rewrite IH //; lia]. Qed.

(** A filling in which the profit of worker [g] is at most [x]. *)
Lemma bound_with c bs ts g x : filling c ts -> bests_of (table_of c) (workers c) = Some bs ->
  g < size (workers c) -> (zsum profit_of (nth [::] ts g) <= x)%Z ->
  (scale * zsum size_of (flatten ts) <= bound c bs - nth 0%Z bs g + x)%Z.
Proof.
move=> Hfill E Hg Hx; have [Hs Hc] := bests_cover sizes_ge0 E Hfill.
have : (scale * zsum size_of (flatten ts) <= bound c (set_nth 0%Z bs g x))%Z.
  apply: (bound_sound sizes_ge0 Hfill) => [|h Hh]; first by rewrite size_set_nth_in Hs.
  by rewrite nth_set_nth /=; case: (h =P g) => [->|_]; [| exact: Hc].
by rewrite /Cases.bound zsum_set_nth ?Hs //; lia.
Qed.

(** *** Placements *)
Definition taker_refuted c (rows : seq row) (bs : seq Z) (k g : nat) : bool :=
  let w := worker c g in
  if w.1 is slots.+1 then
    if best rows slots (w.2 - size_of k)%Z is Some b
    then (bound c bs - nth 0%Z bs g + (profit_of k + b) <? scale * need c)%Z
    else true
  else true.

(** Copies of a forced class cannot wait. *)
Definition cannot_wait c (k : nat) : bool := is_forced k && (0 < copies c k).

Definition waiting_refuted c (bs : seq Z) (k : nat) : bool :=
  cannot_wait c k || (bound (without c k) bs <? scale * need c)%Z.

Definition placement_complete c (k : nat) (waits : bool) (takers : seq nat) : bool :=
  refutes sizes forced y scale c ||
  if bests_of (table_of c) (workers c) is Some bs then
    let rows := table_of c in
    (waits || waiting_refuted c bs k) &&
    all (fun g => (g \in takers) || taker_refuted c rows bs k g) (iota 0 (size (workers c)))
  else true.

Lemma in_flatten (k : nat) ts : k \in flatten ts -> exists2 g, g < size ts & k \in nth [::] ts g.
Proof. by case/flattenP=> t /(nthP [::])[g Hg <-] kt; exists g. Qed.

Lemma placement_sound c k waits takers : placement_complete c k waits takers ->
  (waits -> ~~ cannot_wait c k -> impossible (without c k)) ->
  (forall g c', g \in takers -> placing c g [:: k] = Some c' -> impossible c') -> impossible c.
Proof.
rewrite /placement_complete => /orP[/(refutes_sound sizes_ge0 scale_pos)//|Hall] Hw Ht ts Hfill.
have [bs E] := bests_exist sizes_ge0 y scale Hfill.
move: Hall; rewrite E => /andP[Hwaits /allP Htake].
have [Hs Hc] := bests_cover sizes_ge0 E Hfill; have [Hsz Hfit Hcop Hf] := Hfill.
case: (boolP (k \in flatten ts)) => kt; last first.
  have Hfill' := without_sound Hfill kt.
  have can : ~~ cannot_wait c k.
    by apply/negP => /andP[Hk k0]; have := Hf k Hk; rewrite (count_memPn kt) => E0; rewrite -E0 in k0.
  case: waits Hw Hwaits => [/(_ isT can) Hw _|_ /=]; first exact: (Hw _ Hfill').
  rewrite /waiting_refuted (negbTE can) /= => Hb.
  have := bound_sound sizes_ge0 Hfill' Hs Hc; rewrite /=; nia.
have [g Hg kg] := in_flatten kt; have Hgw : g < size (workers c) by rewrite -Hsz.
have Hp : perm_eq (nth [::] ts g) ([:: k] ++ rem k (nth [::] ts g)) by apply: perm_to_rem.
have := Htake g; rewrite mem_iota /= add0n => /(_ Hgw) /orP[gt|].
  have [c' Hc' [Hfill' [Hn Htot]]] := placing_sound Hfill Hgw Hp.
  have := Ht g c' gt Hc' _ Hfill'; rewrite Hn Htot; lia.
have [Hs0 Hr0] := Hfit g Hgw.
have Hsl : (size (rem k (nth [::] ts g))).+1 = (worker c g).1 by rewrite -Hs0 (perm_size Hp).
have Hr : (size_of k + zsum size_of (rem k (nth [::] ts g)) <= (worker c g).2)%Z by move: Hr0; rewrite (zsum_perm _ Hp).
rewrite /taker_refuted -Hsl /=.
have [b -> pb] : exists2 b, best (table_of c) (size (rem k (nth [::] ts g))) ((worker c g).2 - size_of k)%Z = Some b &
    (zsum profit_of (rem k (nth [::] ts g)) <= b)%Z.
  apply: table_of_sound => //.
  - by have := slots_most Hgw; rewrite -Hsl => /ltnW.
  - lia.
  - have := room_largest sizes_ge0 Hgw; have := @size_of_ge0 _ sizes_ge0 k; lia.
  move=> j; apply: leq_trans (pattern_copies j Hfill Hgw).
  by rewrite (permP Hp) count_cat leq_addl.
move=> Hb; have := @bound_with c bs ts g (profit_of k + b)%Z Hfill E Hgw.
rewrite (zsum_perm _ Hp) /= => H; have := H ltac:(lia); nia.
Qed.

(** *** Branches

    All patterns of a worker whose profit is at least a threshold, class after class; the table of the classes still to
    come says which numbers of copies can lead to one. *)
Definition level := (nat * nat * seq row)%type.   (* class, copies, table of the classes after it *)

Fixpoint levels_of (room : Z) (most : nat) (copies_of : nat -> nat) (classes : seq nat) : seq row * seq level :=
  match classes with
  | [::] => (empty_table most, [::])
  | k :: rest =>
      let: (rows, below) := levels_of room most copies_of rest in
      (iter (copies_of k) (enter room (size_of k) (profit_of k) [::]) rows, (k, copies_of k, rows) :: below)
  end.

Definition with_copies (rows : seq row) (below : nat -> Z -> Z -> seq (seq nat)) (k count : nat) (room least : Z)
    (m : nat) : seq (seq nat) :=
  let room' := (room - Z.of_nat m * size_of k)%Z in
  let least' := (least - Z.of_nat m * profit_of k)%Z in
  if best rows (count - m) room' is Some b then
    if (least' <=? b)%Z then [seq nseq m k ++ t | t <- below (count - m) room' least'] else [::]
  else [::].

Fixpoint patterns_from (levels : seq level) (count : nat) (room least : Z) : seq (seq nat) :=
  match levels with
  | [::] => if (count == 0) && (least <=? 0)%Z then [:: [::]] else [::]
  | (k, n, rows) :: below =>
      flatten [seq with_copies rows (patterns_from below) k count room least m | m <- iota 0 (minn n count).+1]
  end.

Definition items_of (copies_of : nat -> nat) (classes : seq nat) : seq nat :=
  flatten [seq nseq (copies_of k) k | k <- classes].

Lemma levels_table room most f classes :
  (levels_of room most f classes).1 = table size_of profit_of room most (items_of f classes).
Proof.
rewrite /items_of; elim: classes => //= k rest; case: (levels_of _ _ _ rest) => rows below /= ->.
by elim: (f k) => //= n ->.
Qed.

Lemma zsum_nseq_const (F : nat -> Z) m k : zsum F (nseq m k) = (Z.of_nat m * F k)%Z.
Proof.
elim: m => // m IH; have -> : zsum F (nseq m.+1 k) = (F k + zsum F (nseq m k))%Z by [].
by rewrite IH Nat2Z.inj_succ; ring.
Qed.

Lemma patterns_sound room0 most f classes t room least : uniq classes -> within t (items_of f classes) ->
  size t <= most -> (zsum size_of t <= room)%Z -> (room <= room0)%Z -> (least <= zsum profit_of t)%Z ->
  exists2 t', t' \in patterns_from (levels_of room0 most f classes).2 (size t) room least & perm_eq t t'.
Proof.
elim: classes t room least => [|k rest IH] t room least /=.
  move=> _ Ht _ _ _ Hl; have E : t = [::] by case: t Ht {Hl} => // x t /(_ x) /=; rewrite eqxx.
  move: Hl; rewrite E /= => Hl; have -> : (least <=? 0)%Z by lia.
  by exists [::]; rewrite ?mem_head.
case/andP=> knr ur Ht Hm Hr Hroom Hl.
have := levels_table room0 most f rest.
case El: (levels_of room0 most f rest) => [rows below] Erows; rewrite [fst _]/= in Erows.
have HIH := IH _ _ _ ur; rewrite El /= in HIH.
pose m := count_mem k t; pose r := filter (predC1 k) t.
have Hp : perm_eq t (nseq m k ++ r).
  have -> : nseq m k = filter (pred1 k) t.
    by rewrite /m -size_filter; apply/esym/all_pred1P; apply: filter_all.
  by rewrite perm_sym perm_filterC.
have sz : size t = m + size r by rewrite (perm_size Hp) size_cat size_nseq.
have Hs : zsum size_of t = (Z.of_nat m * size_of k + zsum size_of r)%Z.
  by rewrite (zsum_perm size_of Hp) zsum_cat zsum_nseq_const.
have Hq : zsum profit_of t = (Z.of_nat m * profit_of k + zsum profit_of r)%Z.
  by rewrite (zsum_perm profit_of Hp) zsum_cat zsum_nseq_const.
have Hcount j : count_mem j t = m * (k == j) + count_mem j r.
  by rewrite (permP Hp) count_cat count_nseq mulnC.
have mk : m <= f k.
  have := Ht k; rewrite /items_of /= count_cat count_nseq /= eqxx mul1n -/m.
  rewrite (count_copies f) [count_mem k rest](count_memPn knr) mul0n addn0; exact.
have rk : count_mem k r = 0 by have := Hcount k; rewrite eqxx muln1 -/m; lia.
have Hwr : within r (items_of f rest).
  move=> j; case: (j =P k) => [->|/eqP jk]; first by rewrite rk.
  have := Ht j; rewrite Hcount /items_of /= count_cat count_nseq /=.
  by rewrite eq_sym (negbTE jk) muln0 mul0n !add0n.
have room_r : (room - Z.of_nat m * size_of k <= room0)%Z by have := @size_of_ge0 _ sizes_ge0 k; nia.
have [b Hb pb] : exists2 b, best rows (size r) (room - Z.of_nat m * size_of k)%Z = Some b & (zsum profit_of r <= b)%Z.
  have Hrm : size r <= most by apply: leq_trans Hm; rewrite sz leq_addl.
  have Hrr : (zsum size_of r <= room - Z.of_nat m * size_of k)%Z by lia.
  by rewrite Erows; apply: best_sound => //; exact: size_of_ge0.
have Esz : size t - m = size r by rewrite sz addKn.
have Hrm : size r <= most by apply: leq_trans Hm; rewrite sz leq_addl.
have Hrr : (zsum size_of r <= room - Z.of_nat m * size_of k)%Z by lia.
have Hrl : (least - Z.of_nat m * profit_of k <= zsum profit_of r)%Z by lia.
have [t' Ht' Hp'] := HIH r _ _ Hwr Hrm Hrr room_r Hrl.
exists (nseq m k ++ t'); last by apply: perm_trans Hp _; rewrite perm_cat2l.
rewrite [snd _]/= [patterns_from (_ :: _)]/patterns_from -/patterns_from.
apply/flattenP; exists (with_copies rows (patterns_from below) k (size t) room least m).
  by apply: map_f; rewrite mem_iota add0n ltnS leq_min mk /= sz leq_addr.
rewrite /with_copies Esz Hb; have -> : (least - Z.of_nat m * profit_of k <=? b)%Z by lia.
exact: map_f.
Qed.

Definition branch_complete c (g : nat) (patterns : seq (seq nat)) : bool :=
  refutes sizes forced y scale c || (g < size (workers c)) &&
  if bests_of (table_of c) (workers c) is Some bs then
    let w := worker c g in
    let most := w.1 in
    let levels := (levels_of w.2 most (fun k => minn (copies c k) most) (iota 0 (size (left c)))).2 in
    let least := (scale * need c - (bound c bs - nth 0%Z bs g))%Z in
    all (fun t => has (fun p => perm_eq t p) patterns) (patterns_from levels most w.2 least)
  else true.

Lemma branch_sound c g patterns : branch_complete c g patterns ->
  (forall t c', t \in patterns -> placing c g t = Some c' -> impossible c') -> impossible c.
Proof.
case/orP=> [/(refutes_sound sizes_ge0 scale_pos)//|/andP[Hg Hall] Hch ts Hfill].
have [bs E] := bests_exist sizes_ge0 y scale Hfill.
move: Hall; rewrite E => /allP Hall; have [Hsz Hfit Hcop Hf] := Hfill; have [Hsl Hr] := Hfit g Hg.
set t := nth [::] ts g in Hsl Hr.
case: (Z.ltb_spec (scale * zsum size_of (flatten ts)) (scale * need c)) => Hneed; first nia.
have Hprofit := @bound_with c bs ts g (zsum profit_of t) Hfill E Hg (Z.le_refl _).
have Hwt : within t (items_of (fun k => minn (copies c k) (worker c g).1) (iota 0 (size (left c)))).
  have := @within_items (left c) (worker c g).1 t; rewrite -Hsl /items /items_of => H.
  by apply: H => // k; apply: (pattern_copies k Hfill Hg).
have [t' Ht' Hp] : exists2 t', t' \in patterns_from (levels_of (worker c g).2 (worker c g).1
      (fun k => minn (copies c k) (worker c g).1) (iota 0 (size (left c)))).2 (worker c g).1 (worker c g).2
      (scale * need c - (bound c bs - nth 0%Z bs g))%Z & perm_eq t t'.
  rewrite -{3}Hsl; apply: patterns_sound => //; [exact: iota_uniq | by rewrite Hsl | lia | lia].
have /hasP[p pin tp] := Hall _ Ht'.
have Hpp : perm_eq t (p ++ [::]) by rewrite cats0; apply: perm_trans Hp tp.
have [c' Hc' [Hfill' [Hn Htot]]] := placing_sound Hfill Hg Hpp.
have := Hch p c' pin Hc' _ Hfill'; rewrite Hn Htot; lia.
Qed.

End Trees.

(** ** The walk through a tree

    The stack holds the cases that are still to be refuted; [None] is a part that no filling has. A record takes the
    first and puts its parts in its place. *)
Section Walk.
Variables (sizes : seq Z) (forced : seq bool) (scale : Z) (vectors : seq (seq Z)).
Hypothesis sizes_ge0 : all (fun v => (0 <=? v)%Z) sizes.
Hypothesis scale_pos : (0 < scale)%Z.

Definition price (i : nat) : nat -> Z := let vector := nth [::] vectors i in fun k => nth 0%Z vector k.

Definition possible_parts (o : option case) (r : record) : option (seq (option case)) :=
  match r with
  | Refuted i => if (if o is Some c then refutes sizes forced (price i) scale c else true) then Some [::] else None
  | Placement k i waits takers =>
      if (if o is Some c then placement_complete sizes forced (price i) scale c k waits takers else true)
      then Some ((if waits
                  then [:: obind (fun c => if cannot_wait forced c k then None else Some (without c k)) o] else [::])
                 ++ [seq obind (fun c => placing sizes c g [:: k]) o | g <- takers])
      else None
  | Branch g i patterns =>
      if (if o is Some c then branch_complete sizes forced (price i) scale c g patterns else true)
      then Some [seq obind (fun c => placing sizes c g t) o | t <- patterns]
      else None
  end.

Definition impossible_part (o : option case) : Prop := if o is Some c then impossible sizes forced c else True.

Lemma in_map_list (T : eqType) (U : Type) (f : T -> U) (s : seq T) x : x \in s -> List.In (f x) [seq f z | z <- s].
Proof. by elim: s => //= z s IH; rewrite inE => /orP[/eqP->|/IH]; [left | right]. Qed.

Lemma parts_sound o r parts : possible_parts o r = Some parts ->
  (forall part, List.In part parts -> impossible_part part) -> impossible_part o.
Proof.
case: o => [c|//]; case: r => [i|k i waits takers|g i patterns] /=; case: ifP => // H [<-] Hparts.
- exact: (refutes_sound sizes_ge0 scale_pos H).
- apply: (placement_sound sizes_ge0 scale_pos H) => [w can|g c' gt E].
    have H' := Hparts (Some (without c k)); rewrite w (negbTE can) in H'.
    exact: (H' (or_introl erefl)).
  by apply: (Hparts (Some c')); apply/List.in_app_iff; right; rewrite -E; apply: in_map_list gt.
apply: (branch_sound sizes_ge0 scale_pos H) => t c' tp E.
by apply: (Hparts (Some c')); rewrite -E; apply: in_map_list tp.
Qed.

Fixpoint walk (records : seq record) (stack : seq (option case)) : bool :=
  match records, stack with
  | [::], [::] => true
  | r :: records', o :: stack' =>
      if possible_parts o r is Some parts then walk records' (parts ++ stack') else false
  | _, _ => false
  end.

Theorem walk_sound records stack : walk records stack ->
  forall o, List.In o stack -> impossible_part o.
Proof.
elim: records stack => [|r records IH] [|o stack] //=.
case E: (possible_parts o r) => [parts|//] /IH H o' [<-|Ho'].
  by apply: parts_sound E _ => part Hp; apply: H; apply/List.in_app_iff; left.
by apply: H; apply/List.in_app_iff; right.
Qed.

Corollary tree_sound records c : walk records [:: Some c] -> impossible sizes forced c.
Proof. by move=> H; exact: (walk_sound H (or_introl erefl)). Qed.

End Walk.
