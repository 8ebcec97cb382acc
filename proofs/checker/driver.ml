(* Read a step and a certificate as words, run the verified check, and say what it answered.

   The words, separated by white space, each list after its length:

     lbopt-formal 1
     loads n l ...      slots n c ...      sizes n s ...      must n 0|1 ...
     bound C            scale S
     vectors n          then n times:  vector n price ...
     nodes n            then n times:  node first last prices records, followed by its records:
                          refuted prices
                          placement class prices waits n worker ...
                          branch worker prices n, then n times:  pattern n class ...
     end

   Exit code 0: accepted. 1: not accepted, which says nothing about the bound. 2: not such a file. What the theorem
   [check_sound] speaks of is the value of [check] on what was read here; this file is not verified. *)

open Checked

exception Malformed of string

let fail message = raise (Malformed message)

(* Free slots, requests and records are counted one by one in the verified program. *)
let most_counted = 1 lsl 22

let word () = Scanf.bscanf Scanf.Scanning.stdin " %s" (fun w -> w)

let expect name =
  let found = word () in
  if found <> name then fail (Printf.sprintf "'%s' stands where '%s' was expected" found name)

let integer () =
  let w = word () in
  let sign, digits =
    if w <> "" && w.[0] = '-' then (true, String.sub w 1 (String.length w - 1)) else (false, w)
  in
  if digits = "" || not (String.for_all (fun c -> '0' <= c && c <= '9') digits) then
    fail (Printf.sprintf "'%s' is not a whole number" w);
  if String.length digits > 60 then fail "a number has more than 60 digits";
  let rec positive n = if n = 1 then XH else if n land 1 = 1 then XI (positive (n / 2)) else XO (positive (n / 2)) in
  let small n = if n = 0 then Z0 else Zpos (positive n) in
  let value =
    String.fold_left (fun z c -> Z.add (Z.mul (small 10) z) (small (Char.code c - Char.code '0'))) Z0 digits
  in
  if sign then Z.opp value else value

let count () =
  let w = word () in
  match int_of_string_opt w with
  | Some n when 0 <= n && n <= most_counted -> n
  | _ -> fail (Printf.sprintf "'%s' is not a count from 0 to %d" w most_counted)

let natural () =
  let rec build n acc = if n = 0 then acc else build (n - 1) (S acc) in
  build (count ()) O

let flag () = match word () with "0" -> false | "1" -> true | w -> fail (Printf.sprintf "'%s' is not 0 or 1" w)

(* Elements are read in their order; the list is built from its end. *)
let listed item =
  let rec read n acc = if n = 0 then List.rev acc else read (n - 1) (item () :: acc) in
  read (count ()) []

let named name item =
  expect name;
  listed item

let record () =
  match word () with
  | "refuted" -> Refuted (natural ())
  | "placement" ->
      let k = natural () in
      let prices = natural () in
      let waits = flag () in
      Placement (k, prices, waits, listed natural)
  | "branch" ->
      let g = natural () in
      let prices = natural () in
      Branch (g, prices, listed (fun () -> named "pattern" natural))
  | w -> fail (Printf.sprintf "'%s' is no record of a tree" w)

let node () =
  expect "node";
  let first_envelope = integer () in
  let last_envelope = integer () in
  let node_prices = natural () in
  { first_envelope; last_envelope; node_prices; tree = listed record }

let read () =
  expect "lbopt-formal";
  expect "1";
  let in_loads = named "loads" integer in
  let in_slots = named "slots" natural in
  let in_sizes = named "sizes" integer in
  let in_must = named "must" flag in
  expect "bound";
  let claimed = integer () in
  expect "scale";
  let scale_of = integer () in
  let vectors_of = named "vectors" (fun () -> named "vector" integer) in
  let nodes_of = named "nodes" node in
  expect "end";
  ({ in_loads; in_slots; in_sizes; in_must }, { claimed; scale_of; vectors_of; nodes_of })

let () =
  match read () with
  | problem, certificate -> (
      match check problem certificate with
      | true -> print_endline "accepted"
      | false ->
          print_endline "not accepted";
          exit 1
      | exception Stack_overflow ->
          print_endline "not accepted: the problem is too large for the stack";
          exit 1)
  | exception Malformed message ->
      prerr_endline ("malformed: " ^ message);
      exit 2
  | exception (End_of_file | Scanf.Scan_failure _ | Failure _) ->
      prerr_endline "malformed: the file ends early";
      exit 2
