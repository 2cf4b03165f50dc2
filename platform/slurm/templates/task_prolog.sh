# SPDX-License-Identifier: MIT
{{>script}}
# given SERVER PROFILE FIRST LAST: the GPUs of a kind
given()
{
	gpus=0
	for gpu in $(echo "$CUDA_VISIBLE_DEVICES" | tr , ' '); do
		[ "$gpu" -lt "$3" ] || [ "$gpu" -gt "$4" ] ||
			gpus=$((gpus + 1))
	done
	printf 'export %s\n' "GPEMU_GPU_SERVER=$1" \
		"GPEMU_GPU_PROFILE=$2" "GPEMU_GPUS=$gpus"
}
case ${CUDA_VISIBLE_DEVICES%%,*} in
{{#kinds}}
{{&indices}}) given {{&server}} {{&profile}} {{first}} {{last}} ;;
{{/kinds}}
esac
