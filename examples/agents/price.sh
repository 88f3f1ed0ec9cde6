#!/bin/sh
# A shell script behind the gate: it proposes, waits, and acts on the exit code. The connector carries out the
# change, so the script holds no credentials of the shop. A rerun joins the same action.
#     GATEHOUSE_URL=… GATEHOUSE_KEY=… ./price.sh SKU-1042 10.00 12.50
set -u
sku=$1 old=$2 new=$3

code=0
gatehouse propose --type price_change --connector shop --operation update --target "item/$sku" \
  --was "price=$old" --set "price=$new" --rationale "the supplier's list has $new" \
  --idempotency-key "price:$sku:$old:$new" --wait --timeout "${PATIENCE:-1h}" || code=$?

case $code in
  0) echo "$sku costs $new" ;;
  8) echo "nobody has decided yet: run it again later" ;;
  10) echo "refused, by a person or the policy: $sku still costs $old" ;;
  11) echo "nobody answered in time" ;;
  12) echo "canceled, or replaced by another revision: gatehouse list -q $sku shows it" ;;
  13) echo "it may have taken effect: a person looks into it, and it is not to be run again" ;;
  *) echo "not done, or not known: see the message above" ;;
esac
exit "$code"
